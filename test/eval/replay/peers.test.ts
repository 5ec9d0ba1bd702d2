import { describe, expect, it } from "vitest";
import { ORDERING_POLICIES } from "../../../src/core/index.js";
import { someOf } from "../../run-length.js";
import {
  contextPilotsOwn,
  memoryHitShare,
  type PolicyFor,
  readRecording,
  recordedPeers,
  SKIPPED,
} from "../locomo/recorded-searches.js";

const data = recordedPeers();
const reason = data === null ? SKIPPED : "";

describe.skipIf(reason !== "")(`single prompts on recorded Mem0 searches of LoCoMo's conv-26${reason}`, () => {
  it.each(someOf([20, 100], 1))(
    "hit at least 1.7 times the memory tokens that ContextPilot's own order does at k = %i",
    (k) => {
      const recording = readRecording(data ?? "", "conv-26");
      const limit = recording.trace.questions.length;
      const hits = (policyFor: PolicyFor) => memoryHitShare(recording, { k, policyFor, budgetEach: null, limit });
      const peer = hits(contextPilotsOwn);
      expect(peer).toBeGreaterThan(0);
      expect(hits(() => ORDERING_POLICIES["prefix-exact"]) / peer).toBeGreaterThanOrEqual(1.7);
      expect(peer).toBeGreaterThan(hits(() => ORDERING_POLICIES.retrieval));
    },
  );
});
