import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { memoryHits, readRecording } from "./recorded-searches.js";

const shared = fileURLToPath(new URL("../../../shared/data/", import.meta.url));
const reason = existsSync(shared) ? "" : " (skipped: the recorded searches are not here)";

describe.skipIf(reason !== "")(`single prompts on recorded Mem0 searches of LoCoMo's conv-26${reason}`, () => {
  it.each([20, 100] as const)(
    "hit at least 1.7 times the memory tokens that ContextPilot's own order does at k = %i",
    (k) => {
      const hits = memoryHits(readRecording(shared, "conv-26"), k);
      expect(hits.contextPilot).toBeGreaterThan(0);
      expect(hits.prefixExact / hits.contextPilot).toBeGreaterThanOrEqual(1.7);
      expect(hits.contextPilot).toBeGreaterThan(hits.retrieval);
    },
  );
});
