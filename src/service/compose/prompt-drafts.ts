import {
  type ChatMessage,
  type Depth,
  type Digest,
  draftPrompt,
  type MemoryId,
  NOTHING_INJECTED,
  promptHead,
  standingMemories,
} from "../../core/index.js";
import type { TenantParts } from "../base/memstem-parts.js";
import type { Tenant } from "../base/tenant.js";
import type { DeletionWatch } from "../scopes/deletion-watch.js";
import type { WorkingScope } from "../scopes/working-scope.js";
import type { DraftedPrompt } from "./chosen-depth.js";
import { enginePrompt, type PromptForEngine, saidNow } from "./compose-answer.js";
import type { ComposeRequest } from "./compose-request.js";
import { type KnownTexts, knownTexts } from "./known-texts.js";
import { settleLookup } from "./memory-lookup.js";
import { bounded, NOTHING_FOUND, type PlanningInput, type Retrieved } from "./planning-input.js";
import type { PromptRouting } from "./prompt-routing.js";

/** The prefix of a prompt, as sent to its engine. */
export interface ColdHead {
  readonly messages: readonly ChatMessage[];
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** Notices what was deleted since it was made. */
  readonly watch: Pick<DeletionWatch, "isSendable">;
}

/** Minimum uncached tokens of a prefix: below it a separate warm-up request costs more than it saves. */
const MIN_COLD_TOKENS = 256;

/** Reads ahead of a prompt, for one tenant: nothing of it is served or stored. */
export class PromptDrafts {
  constructor(
    private readonly parts: TenantParts,
    private readonly tenant: Tenant,
    private readonly routing: PromptRouting,
    private readonly input: PlanningInput,
  ) {}

  /** Drafts a request's prompt at a depth, in its engine's form; null: with all its blocks. Serves and stores nothing. */
  async draft(
    working: WorkingScope,
    request: ComposeRequest,
    retrieved: Retrieved,
    depth: Depth | null,
  ): Promise<DraftedPrompt> {
    const stored = await this.input.past(working, request, true);
    const { scope, state } = working;
    const now = this.parts.now();
    const settled = settleLookup(retrieved.lookup, state.register, this.input.topKOf(request), now);
    const said = this.input.saidIn(request, stored);
    const input = this.input.of(working, request, said, stored, { ...retrieved, ...settled, depth }, now);
    const { prompt, past, choice, replay, selection, section } = bounded(() => draftPrompt(state, input));
    const adapter = this.input.engineOf(request);
    const drafted: PromptForEngine = {
      // Not the request's own id, which belongs to the final prompt.
      requestId: this.parts.newRequestId(),
      scope,
      messages: prompt.messages,
      head: past.head.messages.length,
      plan: {
        layout: request.conversationId === null ? "single" : "conversation",
        retention: choice.retention,
        stableMessages: replay.stableMessages,
      },
      injection: section.injection,
      cacheSecret: this.tenant.cacheSecret,
    };
    const emitted = adapter.emit(enginePrompt(drafted, { ...request, said: saidNow(request) }));
    const { ordering, fresh, due } = selection;
    const noLogprobs = adapter.noLogprobs ?? null;
    return { ...emitted, ordering, blocks: fresh.length, due, noLogprobs, watch: working.watch() };
  }

  /** The memories of the source that earlier turns of the request's conversation gave, as far as they are current. */
  async standing(working: WorkingScope, request: ComposeRequest): Promise<readonly MemoryId[]> {
    const past = await this.input.readPast(working, request);
    const { state } = working;
    const said = this.input.saidIn(request, past);
    return standingMemories(state, this.input.of(working, request, said, past, NOTHING_FOUND, this.parts.now()));
  }

  /** The prefix of a request's prompt before its memories are known, as it would be sent; null if most of it should be cached. */
  async coldHead(working: WorkingScope, request: ComposeRequest): Promise<ColdHead | null> {
    // The worker of a prompt is chosen with its memories.
    if (this.routing.namesFor(request).length > 0) return null;
    const past = await this.input.past(working, request, true);
    const { scope, state } = working;
    const said = this.input.saidIn(request, past);
    // What a window's prompt begins with depends on its memories.
    if (said.historyTerms?.window != null) return null;
    const head = promptHead(state, this.input.of(working, request, said, past, NOTHING_FOUND, this.parts.now()));
    if (head === null || head.coldTokens < MIN_COLD_TOKENS) return null;
    const layout = request.conversationId === null ? "single" : "conversation";
    const cold: PromptForEngine = {
      requestId: this.parts.newRequestId(),
      scope,
      // Chat templates require a final question; the prompts are equal up to its text.
      messages: [...head.messages, { role: "user", content: "." }],
      head: head.instructions,
      plan: { layout, retention: "keep", stableMessages: 0 },
      injection: NOTHING_INJECTED,
      cacheSecret: this.tenant.cacheSecret,
    };
    const prompt = enginePrompt(cold, { ...request, said: saidNow(request) });
    const { messages, fields, headers } = this.input.engineOf(request).emit(prompt);
    return { messages, fields, headers, watch: working.watch() };
  }

  /** What the scope knows for planning requests with these texts, which have the same messages before their memories as `request`. */
  async known(
    working: WorkingScope,
    request: ComposeRequest,
    texts: readonly (readonly Digest[])[],
  ): Promise<KnownTexts> {
    const past = await this.input.readPast(working, request);
    const { state } = working;
    const said = this.input.saidIn(request, past);
    return knownTexts(state, this.input.of(working, request, said, past, NOTHING_FOUND, this.parts.now()), texts);
  }
}
