import type { PromptTable } from "../../store/prompt-figures.js";

const DAY_MS = 86_400_000;
/** Days for which figures are kept: those of the longest window. */
const KEPT_DAYS = 31;
/** Most prompts of all tenants: as many as are summed up over a month in about a second. */
const MOST_PROMPTS = 200_000;

/**
 * Removes figures of prompts that are too old or too many.
 *
 * @param now milliseconds since the epoch
 * @param keepDays days after which unused data expires; default: never
 */
export function sweepPrompts(prompts: PromptTable, now: number, keepDays = KEPT_DAYS): Promise<void> {
  return prompts.sweep(now - Math.min(KEPT_DAYS, keepDays) * DAY_MS, MOST_PROMPTS);
}
