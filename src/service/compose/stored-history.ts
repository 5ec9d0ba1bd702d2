import { type ChatMessage, findCut, isInstruction, type Warning } from "../../core/index.js";
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

/** A window behind the messages that the client cut; null where it is none. `added`: of the client's, those that are new. */
export function behindCut(
  stored: StoredHistory,
  messages: readonly ChatMessage[],
): { readonly said: SaidMessages; readonly fresh: readonly ChatMessage[] } | null {
  const { head, said } = withoutHead(messages);
  const cut = findCut(stored.messages, said);
  if (cut === null) return null;
  const fresh = said.slice(cut.pinned + stored.messages.length - cut.from);
  const extended = [...head, ...stored.messages, ...fresh];
  return { said: { messages: extended, added: cut.from - cut.pinned, warnings: [] }, fresh };
}

function withoutHead(messages: readonly ChatMessage[]) {
  const first = Math.max(
    0,
    messages.findIndex((message) => !isInstruction(message)),
  );
  return { head: messages.slice(0, first), said: messages.slice(first) };
}
