/* Values of options, read from the command line's text. Each throws commander's `InvalidArgumentError`. */

import { InvalidArgumentError } from "commander";
import { HISTORY_NAMES, type HistoryName } from "../core/conversation/epoch.js";
import { DEFAULT_HISTORY_RATIO } from "../core/index.js";
import { hasRatio } from "../eval/run/arms.js";

export function ratio(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number >= 1 && number <= 100)) throw new InvalidArgumentError("must be 1 to 100");
  return number;
}

export function positive(value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError("must be a whole number above 0");
  return number;
}

export function positiveNumber(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number > 0)) throw new InvalidArgumentError("must be above 0");
  return number;
}

export function wholeNumber(least: number, most: number): (value: string) => number {
  return (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < least || number > most)
      throw new InvalidArgumentError(`must be ${least} to ${most}`);
    return number;
  };
}

/** Reads a list separated by commas, without duplicates. */
export function list<T>(item: (text: string) => T): (value: string) => T[] {
  return (value) => [...new Set(value.split(",").map((text) => item(text.trim())))];
}

export function oneOf<const T extends string>(names: readonly T[]): (text: string) => T {
  return (text) => {
    const name = names.find((known) => known === text);
    if (name === undefined) throw new InvalidArgumentError(`Allowed choices are ${names.join(", ")}.`);
    return name;
  };
}

/* Options for conversations sent as a window: `--window`, `--history`, `--history-ratio`. */

/** The histories compared by default. `stored` is for clients that send only new messages. */
export const WINDOW_HISTORIES: readonly HistoryName[] = HISTORY_NAMES.filter((name) => name !== "stored");

export const HISTORY_RATIO = `tokens of extended prompts, on average, as a multiple of what the windows alone would have sent (default: ${DEFAULT_HISTORY_RATIO})`;

interface WindowOptions {
  readonly window?: unknown;
  readonly history?: readonly HistoryName[] | undefined;
  readonly historyRatio?: number | undefined;
}

/** The error of options that conflict, naming one; null for none. */
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
