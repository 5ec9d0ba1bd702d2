import { HISTORY_NAMES, type HistoryName } from "../core/conversation/epoch.js";
import { DEFAULT_HISTORY_RATIO } from "../core/index.js";
import { hasRatio } from "../eval/run/arms.js";

/*
 * Options of commands whose conversations are sent as a window: `--window`, `--history`, `--history-ratio`.
 */

/** What is compared where no history is named: what memstem can make of a window. `stored` is for clients that send what is new. */
export const WINDOW_HISTORIES: readonly HistoryName[] = HISTORY_NAMES.filter((name) => name !== "stored");

/** Help of `--history-ratio`. */
export const HISTORY_RATIO = `tokens of extended prompts, on average, as a multiple of what the windows alone would have sent (default: ${DEFAULT_HISTORY_RATIO})`;

interface WindowOptions {
  readonly window?: unknown;
  readonly history?: readonly HistoryName[] | undefined;
  readonly historyRatio?: number | undefined;
}

/** What is wrong with them together, naming the option; null for nothing. */
export function windowProblem(
  { window, history, historyRatio }: WindowOptions,
  isConversation: boolean,
): string | null {
  if (window !== undefined && !isConversation) return "--window: needs --layout conversation";
  if (window === undefined && history !== undefined) return "--history: needs --window";
  if (window === undefined && historyRatio !== undefined) return "--history-ratio: needs --window";
  if (historyRatio !== undefined && history !== undefined && !history.some(hasRatio)) {
    return `--history-ratio: does not apply to ${history.join(" and ")}`;
  }
  return null;
}
