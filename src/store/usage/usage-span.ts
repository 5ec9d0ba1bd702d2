import type { UsageWindow } from "../../core/index.js";
import type { UsageSpan, UsageView } from "../api/usage-log.js";
import { STEPS_MS } from "./usage-totals.js";

/** How many steps a window has. */
const STEPS: Readonly<Record<UsageWindow, number>> = { hour: 60, day: 96, month: 124 };

/** A window's span in whole steps, the running one included. */
export function spanOf({ window, now }: Pick<UsageView, "window" | "now">): UsageSpan {
  const stepMs = STEPS_MS[window];
  const to = (Math.floor(now / stepMs) + 1) * stepMs;
  return { from: to - STEPS[window] * stepMs, to, stepMs };
}
