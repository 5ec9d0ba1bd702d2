import { heldTokens } from "../cache/residency.js";
import { DROPS_NOTHING } from "../conversation/conversation.js";
import { recallHistory, splitAtAnchor } from "../conversation/history.js";
import { promptSections, replayTurns } from "../conversation/replay.js";
import { type UsablePath, usablePaths } from "../ordering/prefix-search.js";
import { messagesTokens, Prompt } from "../prompt/prompt.js";
import type { Digest, Label } from "../text/ids.js";
import type { ChatMessage } from "../text/message.js";
import type { ComposeInput } from "./compose-input.js";
import type { ScopeState } from "./scope-state.js";

/** The part of a prompt that is known before its memories are. */
export interface PromptHead {
  /** Instructions and replayed history, up to the message of the question. */
  readonly messages: readonly ChatMessage[];
  /** How many of them are instructions. */
  readonly instructions: number;
  /** Tokens of them that should not be cached; estimated. */
  readonly coldTokens: number;
}

/**
 * The prefix that a prompt will have whatever memories are found. Null if unknown: for a section after a tool's result, and for `auto` where
 * it may start afresh, as memories of earlier turns stand in the prompt. Serves nothing: the next compose is not affected.
 */
export function promptHead(state: ScopeState, input: ComposeInput): PromptHead | null {
  const { cache, countTokens } = input;
  const { residency } = cache;
  const { index, register } = state;
  const history = recallHistory(input);
  if (history.placement !== "in-question") return null;
  residency.expire(index, input.now);
  const replay = replayTurns(state, history, DROPS_NOTHING, countTokens, cache);
  if (input.retention === "auto" && replay.turns.some(({ section }) => section !== "")) return null;
  const { answer } = splitAtAnchor(history.rest, "in-question");
  const { prompt } = replay;
  prompt.push(answer);
  const tokens = replay.tokens + messagesTokens(answer.messages, countTokens);
  const anchor = prompt.anchorFor("in-question");
  const own = { anchor, blocks: [], before: tokens, end: tokens, sentBy: null };
  const { sections, known } = promptSections(replay, own, residency, register, countTokens);
  const { cachedTokens } = heldTokens(index, residency, sections, known);
  return {
    messages: prompt.messages,
    instructions: history.head.messages.length,
    coldTokens: Math.max(0, tokens - Math.max(cachedTokens, replay.othersTokens)),
  };
}

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
  input: ComposeInput,
  wanted: readonly ReadonlySet<Label>[],
): BatchKnowledge {
  input.cache.residency.expire(index, input.now);
  const anchor = firstAnchor(input);
  return {
    cached: anchor === null ? [] : usablePaths(index.root(anchor), wanted),
    recent: recent.sets(),
  };
}

/** Digest of the bytes before a prompt's memories; null where the prompt continues earlier turns, after which no other one comes. */
function firstAnchor(input: ComposeInput): Digest | null {
  const { head, turns, rest, placement } = recallHistory(input);
  if (turns.length > 0 || rest.messages.length === 0) return null;
  const prompt = new Prompt();
  prompt.push(head);
  prompt.push(splitAtAnchor(rest, placement).answer);
  return prompt.anchorFor(placement, true, input.annotations === "paper");
}
