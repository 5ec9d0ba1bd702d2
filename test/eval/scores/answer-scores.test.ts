import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { comparable, tokenF1 } from "../../../src/eval/scores/answer-scores.js";

describe("F1, 2 · common ÷ (distinct words answered + distinct words of gold)", () => {
  it.each<[answer: string, gold: string, f1: number, because: string]>([
    ["7 May 2023", "7 May 2023", 1, "the same"],
    ["May 7, 2023", "7 May 2023", 1, "in any order, without the comma"],
    ["She went there on 7 May 2023", "7 May 2023", 6 / 10, "a longer answer"],
    ["the the the", "the cat", 2 / 3, "a word counts once"],
    ["adoption agencies", "Adoption agencies.", 1, "in lower case, without the period"],
    ["a transgender woman", "Transgender woman", 4 / 5, "articles count"],
    ["painting, swimming", "pottery, camping, painting, swimming", 4 / 6, "gold is taken whole"],
    ["likely no she", "likely no; she wants", 4 / 7, "other punctuation stays with its word"],
    ["Sweden", "Norway", 0, "nothing is common"],
    ["?!", "Sweden", 0, "no word in the answer"],
  ])("%s | %s: %d: %s", (answer, gold, f1) => {
    expect(tokenF1(answer, gold)).toBeCloseTo(f1, 12);
  });

  it("does not depend on the order of words, nor on which text is gold", () => {
    const words = fc.array(fc.stringMatching(/^[a-z0-9]{1,6}$/), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(words, words, (said, wanted) => {
        const [answer, gold] = [said.join(" "), wanted.join(" ")];
        expect(tokenF1(said.toReversed().join(" "), gold)).toBe(tokenF1(answer, gold));
        expect(tokenF1(gold, answer)).toBe(tokenF1(answer, gold));
      }),
    );
  });

  it("compares neither the adversarial category nor what a judge alone can read", () => {
    const question = { question: "What?", answer: "Tea", category: 1, evidence: [] };
    expect(comparable(question)).toBe("Tea");
    for (const other of [{ category: 5 }, { answer: null }, { gold: "reason" as const }])
      expect(comparable({ ...question, ...other })).toBeNull();
  });
});
