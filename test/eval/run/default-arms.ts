import { DEFAULT_RETENTION } from "../../../src/core/index.js";
import type { ArmChoices } from "../../../src/eval/run/arms.js";

/** What `memprefix eval` compares where nothing else is asked for. */
export const DEFAULT_ARMS: ArmChoices = {
  layouts: ["single"],
  ks: [20, 100],
  policies: ["readme", "retrieval", "context-pilot", "prefix-exact", "carry-over"],
  annotations: [null],
  depths: [null],
  retentions: [DEFAULT_RETENTION],
  budgetRatios: [1.5],
  windows: [null],
  histories: ["exact"],
  historyRatio: null,
};
