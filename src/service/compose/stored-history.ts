import {
  type ChatMessage,
  continuesEpoch,
  findCut,
  isInstruction,
  messagesTokens,
  type TokenCounter,
  type Warning,
} from "../../core/index.js";
import type { StoredHistory } from "../../store/api/store.js";

const ERASED: Warning = {
  code: "history_erased",
  message:
    "messages of the stored history were erased, because they quoted what was forgotten; the history begins behind them",
};

const ANSWER_MISSING: Warning = {
  code: "answer_missing",
  message: "the stored history ends with a question: send the assistant's answer to it in front of the new one",
};

/** A request's messages behind others of its conversation. */
export interface SaidMessages {
  readonly messages: readonly ChatMessage[];
  /** How many of them the client did not send. */
  readonly added: number;
  readonly warnings: readonly Warning[];
}

/**
 * A conversation's whole history: what is stored, then what is new. The request's own instructions, where it has any, replace those of the
 * conversation's newest prompt.
 */
export function behindStored(stored: StoredHistory, messages: readonly ChatMessage[]): SaidMessages {
  const { head: own, said: added } = withoutHead(messages);
  const head = own.length > 0 ? own : (stored.head ?? []);
  const isUnanswered = stored.messages.at(-1)?.role === "user" && added[0]?.role === "user";
  return {
    messages: [...head, ...stored.messages, ...added],
    added: head.length - own.length + stored.messages.length,
    warnings: [
      ...(stored.isWhole && (stored.head !== null || own.length > 0) ? [] : [ERASED]),
      ...(isUnanswered ? [ANSWER_MISSING] : []),
    ],
  };
}

/** How far a window may be extended. */
export interface Extension {
  /** Tokens of the memories that were retrieved. */
  readonly memoryTokens: () => number;
  /** Average tokens of an epoch's prompts, as a multiple of what the windows would have sent. */
  readonly ratio: number;
  /** Maximum tokens of a prompt; null: no limit. */
  readonly max: number | null;
  readonly countTokens: TokenCounter;
}

/** A window behind what its client cut, for as long as its epoch goes on; else, and where it is no window, as it was sent. */
export function extended(
  stored: StoredHistory,
  messages: readonly ChatMessage[],
  { memoryTokens, ratio, max, countTokens }: Extension,
): SaidMessages {
  const window = behindCut(stored, messages);
  if (window === null) return asSent(messages);
  const { said, fresh, promptTokens } = window;
  const tokens = {
    prompts: promptTokens.length,
    sent: promptTokens.reduce((sum, each) => sum + each, 0),
    next: (promptTokens[0] ?? 0) + messagesTokens(fresh, countTokens),
    exact: messagesTokens(messages, countTokens) + memoryTokens(),
    max,
  };
  return continuesEpoch(tokens, ratio) ? said : asSent(messages);
}

/** The messages as the client sent them, and no other. */
export function asSent(messages: readonly ChatMessage[]): SaidMessages {
  return { messages, added: 0, warnings: [] };
}

/** A window behind the messages that its client cut. */
interface ExtendedWindow {
  readonly said: SaidMessages;
  /** The client's messages that are new. */
  readonly fresh: readonly ChatMessage[];
  /** Tokens of the epoch's prompts that it continues, newest first. */
  readonly promptTokens: readonly number[];
}

/**
 * Puts a window behind the messages that its client cut; null where it is no window of what is stored. It may also continue the turn before
 * the newest one: a question that is asked again, or edited.
 */
function behindCut(stored: StoredHistory, messages: readonly ChatMessage[]): ExtendedWindow | null {
  const { head, said } = withoutHead(messages);
  const before = stored.messages.slice(0, stored.messages.length - stored.newest);
  for (const [known, promptTokens] of [
    [stored.messages, stored.promptTokens],
    [before, stored.promptTokens.slice(1)],
  ] as const) {
    const cut = findCut(known, said);
    if (cut === null) continue;
    const fresh = said.slice(cut.pinned + known.length - cut.from);
    const extended = { messages: [...head, ...known, ...fresh], added: cut.from - cut.pinned, warnings: [] };
    return { said: extended, fresh, promptTokens };
  }
  return null;
}

function withoutHead(messages: readonly ChatMessage[]) {
  const first = Math.max(
    0,
    messages.findIndex((message) => !isInstruction(message)),
  );
  return { head: messages.slice(0, first), said: messages.slice(first) };
}
