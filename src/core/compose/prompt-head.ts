import { heldTokens } from "../context-index/serving.js";
import { Conversation, recallHistory } from "../conversation/conversation.js";
import { replayTurns, splitAtAnchor } from "../conversation/replay.js";
import { messagesTokens } from "../prompt/prompt.js";
import { type ChatMessage, messageDigest } from "../text/message.js";
import { type ComposeInput, instructionsAtHead } from "./draft.js";
import type { ScopeState } from "./scope-state.js";
import { promptSections } from "./section-tokens.js";

/** What of a prompt is known before its memories are. */
export interface PromptHead {
  /** Instructions and replayed history, up to where the question's message begins. */
  readonly messages: readonly ChatMessage[];
  /** How many of them are instructions. */
  readonly instructions: number;
  /** Tokens of it that should not be cached; estimated. */
  readonly coldTokens: number;
}

/**
 * The beginning that a prompt will have whatever is found for it. Null where that is not known: a section behind a tool's result, and
 * `auto`, which may begin anew. Serves nothing; the next compose is the same as without it.
 */
export function promptHead(
  state: ScopeState,
  input: Pick<
    ComposeInput,
    "conversation" | "messages" | "residency" | "retention" | "now" | "countTokens" | "isOurs" | "toolMemories"
  >,
): PromptHead | null {
  const { conversation, messages, residency, countTokens } = input;
  const { index, register } = state;
  const head = messages.slice(0, instructionsAtHead(messages));
  const turns = conversation?.turns ?? new Conversation([]);
  const history = recallHistory(turns, messages.slice(head.length), input.isOurs, input.toolMemories ?? null);
  if (history.rest.messages.at(-1)?.role !== "user" || input.retention === "auto") return null;
  residency.expire(index, input.now);
  const instructions = { messages: head, digests: head.map(messageDigest) };
  const replay = replayTurns(state, turns, instructions, history, false, countTokens);
  const { answer } = splitAtAnchor(history.rest, "in-question");
  const { prompt } = replay;
  prompt.push(answer);
  const tokens = replay.tokens + messagesTokens(answer.messages, countTokens);
  const own = { anchor: prompt.digest, blocks: [], before: tokens, end: tokens, sentBy: null };
  const { sections, known } = promptSections(replay, own, residency, register, countTokens);
  const { cachedTokens } = heldTokens(index, residency, sections, known);
  return { messages: prompt.messages, instructions: head.length, coldTokens: Math.max(0, tokens - cachedTokens) };
}
