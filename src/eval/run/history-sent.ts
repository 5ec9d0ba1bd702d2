import type { ChatMessage } from "../../core/index.js";
import type { EvalArm } from "../base/run-record.js";

/**
 * What an arm's client sends of the messages before its question: nothing in single prompts; in a conversation all, the last ones of its
 * window, of which the question is one, or with `stored` the last answer alone.
 */
export function historySent(
  history: readonly ChatMessage[],
  { layout, window }: Pick<EvalArm, "layout" | "window">,
): readonly ChatMessage[] {
  if (layout === "single") return [];
  if (window === null) return history;
  const sent = window.history === "stored" ? 1 : window.messages - 1;
  return history.slice(Math.max(0, history.length - sent));
}
