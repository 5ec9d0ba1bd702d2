import { type Depth, draftPrompt, type EngineModel, type Scope } from "../../core/index.js";
import type { MemstemParts } from "../base/memstem-parts.js";
import type { WorkingScope } from "../scopes/working-scopes.js";
import type { DraftedPrompt } from "./chosen-depth.js";
import { composeInput, type LookedUpCompose } from "./composing.js";
import { enginePrompt } from "./engine-prompt.js";

/** The prompt that a request would get at a depth, in its engine's form; null: with all its blocks. Serves and stores nothing. */
export function draftIn(
  working: WorkingScope,
  scope: Scope,
  found: LookedUpCompose,
  depth: Depth | null,
  parts: MemstemParts,
  engine: EngineModel,
): DraftedPrompt {
  const { request, tenant } = found;
  const { input } = composeInput(working, scope, { ...found, depth }, parts, engine, parts.now());
  const { prompt, past, choice, replay, selection, section } = draftPrompt(working.state, input);
  const { ordering, fresh, due } = selection;
  const adapter = parts.engines[request.engine ?? parts.defaults.engineFamily];
  const emitted = adapter.emit({
    ...enginePrompt({
      // A name of its own: the request's is the prompt's that is composed.
      requestId: parts.newRequestId(),
      scope,
      messages: prompt.messages,
      head: past.head.messages.length,
      plan: {
        layout: request.conversationId === null ? "single" : "conversation",
        retention: choice.retention,
        stableMessages: replay.stableMessages,
      },
      injection: section.injection,
      cacheSecret: tenant.cacheSecret,
    }),
    marksElsewhere: request.marksElsewhere ?? 0,
  });
  return { ...emitted, ordering, blocks: fresh.length, due, noLogprobs: adapter.noLogprobs ?? null };
}
