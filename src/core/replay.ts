import type { ContextIndex } from "./context-index.js";
import type { Conversation, RecalledHistory } from "./conversation.js";
import type { Digest, NodeId } from "./ids.js";
import { type DigestedMessages, messagesTokens, Prompt } from "./prompt.js";
import { renderSection, type TextOf } from "./rendering.js";
import type { TokenCounter } from "./token-counter.js";

/** The part of a prompt that earlier turns made, built again. */
export interface Replay {
  readonly prompt: Prompt;
  /** Digest of the instructions. */
  readonly head: Digest;
  readonly tokens: number;
  /** Messages from the front that are byte for byte those of an earlier prompt. */
  readonly stableMessages: number;
  /** Tokens of the longest earlier prompt that this one begins with and that was not evicted. */
  readonly cachedTokens: number;
  /** Node of the index where that prompt's blocks end; null for none. */
  readonly cachedEnd: NodeId | null;
}

/**
 * Puts every turn's injection back where it stood (ALGORITHMS.md §5, history replay). What is stable is not assumed: the rolling
 * digest of what is built now is compared with that of what was sent then, so other instructions or a forgotten memory show.
 */
export function replayTurns(
  conversation: Conversation,
  head: DigestedMessages,
  history: RecalledHistory,
  index: ContextIndex,
  textOf: TextOf,
  countTokens: TokenCounter,
): Replay {
  const prompt = new Prompt();
  prompt.push(head);
  const headDigest = prompt.digest;
  let stable = { messages: 0, tokens: 0 };
  let cachedTokens = 0;
  let cachedEnd: NodeId | null = null;
  for (const { turn, messages } of history.turns) {
    const before = prompt.digest;
    const known = conversation.replayOf(turn.id);
    if (known?.before === before) {
      prompt.pushAgain(messages, turn.placement, known.section, known.after);
    } else {
      const section = renderSection(turn.injection, textOf);
      prompt.pushTurn({ messages, digests: turn.given }, turn.placement, section);
      conversation.rememberReplay(turn.id, { before, section, after: prompt.digest });
    }
    if (prompt.digest !== turn.prompt) continue;
    stable = { messages: prompt.messages.length, tokens: turn.promptTokens };
    const served = turn.injection.blocks.map(({ label }) => label);
    if (!index.holds(turn.anchor, served)) continue;
    cachedTokens = turn.promptTokens;
    cachedEnd = index.endOf(turn.anchor, served);
  }
  const changed = prompt.messages.slice(stable.messages);
  return {
    prompt,
    head: headDigest,
    tokens: stable.tokens + messagesTokens(changed, countTokens),
    stableMessages: stable.messages,
    cachedTokens,
    cachedEnd,
  };
}
