import { describe, expect, it } from "vitest";
import { readLocomo } from "../../../src/eval/locomo/locomo-data.js";

describe("readLocomo", () => {
  it("takes packed evidence apart, as the published file has it in questions and observations", () => {
    const facts = [
      ["Ana sails.", "D26:14, D26:34,D26:42"],
      ["Ana paints.", ["D9:1 D4:4 D4:6", "D2:1"]],
      ["Ana sings.", "D1:1"],
    ];
    const packed = [["D8:6; D9:17"], ["D9:1 D4:4\tD4:6 ", "D2:1;D2:2"], ["D1:1"], [], undefined];
    const [read] = readLocomo([
      {
        sample_id: "conv-1",
        conversation: {},
        observation: { session_1_observation: { Ana: facts } },
        qa: packed.map((evidence) => ({ question: "Who?", answer: "Ana", category: 1, evidence })),
      },
    ]);
    expect(read?.observations.map(({ evidence }) => evidence)).toEqual([
      ["D26:14", "D26:34", "D26:42"],
      ["D9:1", "D4:4", "D4:6", "D2:1"],
      ["D1:1"],
    ]);
    expect(read?.questions.map(({ evidence }) => evidence)).toEqual([
      ["D8:6", "D9:17"],
      ["D9:1", "D4:4", "D4:6", "D2:1", "D2:2"],
      ["D1:1"],
      [],
      [],
    ]);
  });
});
