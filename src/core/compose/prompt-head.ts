import { heldTokens } from "../cache/residency.js";
import { DROPS_NOTHING } from "../conversation/conversation.js";
import { recallHistory, splitAtAnchor, withoutEnded } from "../conversation/history.js";
import { promptSections, replayTurns } from "../conversation/replay.js";
import { usablePaths } from "../ordering/prefix-search.js";
import { messagesTokens, Prompt } from "../prompt/prompt.js";
import type { Digest, Label } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";
import type { ComposeInput } from "./compose-input.js";
import type { ScopeState } from "./scope-state.js";

/** The part of a prompt that is known before its memories are. */
export interface PromptHead {
  /** Instructions and replayed history, up to the message of the question. */
  readonly messages: readonly ChatMessage[];
  readonly instructions: number;
  /** Estimated tokens that should not be cached. */
  readonly coldTokens: number;
}

/** A prompt's prefix, whatever memories are found. Null if unknown: after a tool's result, or if `auto` may start afresh. Serves nothing. */
export function promptHead(state: ScopeState, input: ComposeInput): PromptHead | null {
  const { cache, countTokens } = input;
  const { residency } = cache;
  const { index, register } = state;
  const history = withoutEnded(register, recallHistory(input));
  if (history.placement !== "in-question") return null;
  residency.expire(index, input.now);
  const replay = replayTurns(state, history, DROPS_NOTHING, input);
  if (input.retention === "auto" && replay.turns.some(({ section }) => section !== "")) return null;
  const { answer } = splitAtAnchor(history.rest, "in-question");
  const { prompt } = replay;
  prompt.push(answer);
  const tokens = replay.tokens + messagesTokens(answer.messages, countTokens);
  const anchor = prompt.anchorFor("in-question");
  const own = { anchor, blocks: [], before: tokens, end: tokens, sentBy: null };
  const sections = promptSections(replay, own, residency, register, countTokens);
  const { cachedTokens } = heldTokens(index, residency, sections, replay);
  return {
    messages: prompt.messages,
    instructions: history.head.messages.length,
    coldTokens: Math.max(0, tokens - Math.max(cachedTokens, replay.othersTokens)),
  };
}

/** A scope's knowledge for a batch of requests that begin as `input`. Evicts what should have left the cache. @param wanted each one's blocks */
export function batchKnowledge(
  { index, recent }: ScopeState,
  input: ComposeInput,
  wanted: readonly ReadonlySet<Label>[],
) {
  input.cache.residency.expire(index, input.now);
  const anchor = firstAnchor(input);
  return { cached: anchor === null ? [] : usablePaths(index.root(anchor), wanted), recent: recent.sets() };
}

/** Digest of the bytes before the memories; null if the prompt continues earlier turns. */
function firstAnchor(input: ComposeInput): Digest | null {
  const { head, turns, rest, placement } = recallHistory(input);
  if (turns.length > 0 || rest.messages.length === 0) return null;
  const prompt = new Prompt(input.root);
  prompt.push(head);
  prompt.push(splitAtAnchor(rest, placement).answer);
  return prompt.anchorFor(placement, true, input.annotations === "paper");
}
