/*
 * What is shown of the usage, for those that write it down.
 */

export type { UsageCause } from "../../core/index.js";
export { causesOf, missedTokens, newTokens, timeAt, USAGE_CAUSES, uncachedTokens } from "../../core/index.js";
export type {
  KeptNote,
  KeptUsage,
  ReuseSums,
  TimedSums,
  UsageChanges,
  UsagePage,
  WindowMisses,
  WindowSums,
} from "../../store/api/usage-log.js";
