import type { UsablePath } from "../context-index/prefix-forest.js";
import { splitAtAnchor } from "../conversation/replay.js";
import { Prompt } from "../prompt/prompt.js";
import type { Digest, Label } from "../text/ids.js";
import { type ComposeInput, placementFor } from "./draft.js";
import { type PastInput, recallPast } from "./past.js";
import type { ScopeState } from "./scope-state.js";

/** What a scope knows for planning requests with the same messages before their memories. */
export interface BatchKnowledge {
  /** Least recently used first. */
  readonly cached: readonly UsablePath[];
  /** Block sets of recent requests, oldest first. */
  readonly recent: readonly ReadonlySet<Label>[];
}

/**
 * What a scope knows that is of use for planning several requests with the same messages before their memories. Evicts from the index what
 * should have left the engine's cache; changes nothing else.
 *
 * @param input any of the requests
 * @param wanted each request's blocks
 */
export function batchKnowledge(
  { index, recent }: ScopeState,
  input: PastInput & Pick<ComposeInput, "residency" | "now">,
  wanted: readonly ReadonlySet<Label>[],
): BatchKnowledge {
  input.residency.expire(index, input.now);
  const anchor = firstAnchor(input);
  return {
    cached: anchor === null ? [] : index.usable(anchor, wanted),
    recent: [...recent.sets()],
  };
}

/** Digest of the bytes before a prompt's memories; null where the prompt continues earlier turns, after which no other one comes. */
function firstAnchor(input: PastInput): Digest | null {
  const { head, history } = recallPast(input);
  const last = history.rest.messages.at(-1);
  if (history.turns.length > 0 || last === undefined) return null;
  const placement = placementFor(last, history, input.toolMemories ?? null);
  const prompt = new Prompt();
  prompt.push(head);
  prompt.push(splitAtAnchor(history.rest, placement).answer);
  return prompt.anchorFor(placement);
}
