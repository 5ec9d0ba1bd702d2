import { type ChatMessage, isInstruction, type Warning } from "../../core/index.js";
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

/**
 * A conversation's whole history: what is stored, then what is new. The request's own instructions, where it has any, replace those of the
 * conversation's newest prompt.
 */
export function behindStored(
  stored: StoredHistory,
  messages: readonly ChatMessage[],
): { readonly messages: readonly ChatMessage[]; readonly warnings: readonly Warning[] } {
  const first = messages.findIndex((message) => !isInstruction(message));
  const own = messages.slice(0, Math.max(0, first));
  const added = messages.slice(Math.max(0, first));
  const head = own.length > 0 ? own : (stored.head ?? []);
  const isUnanswered = stored.messages.at(-1)?.role === "user" && added[0]?.role === "user";
  return {
    messages: [...head, ...stored.messages, ...added],
    warnings: [
      ...(stored.isWhole && (stored.head !== null || own.length > 0) ? [] : [ERASED]),
      ...(isUnanswered ? [ANSWER_MISSING] : []),
    ],
  };
}
