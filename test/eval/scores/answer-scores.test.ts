import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bleu1, scoreAnswer, tokenF1, treebankWords } from "../../../src/eval/scores/answer-scores.js";

/**
 * Worked by hand. F1 = 2 · common ÷ (distinct words answered + distinct words of gold). BLEU-1 = clipped common ÷ words answered, times
 * e^(1 − words of gold ÷ words answered) where no more words were answered than gold has.
 */
const CASES: readonly [answer: string, gold: string, f1: number, bleu: number, because: string][] = [
  ["7 May 2023", "7 May 2023", 1, 1, "the same"],
  ["May 7, 2023", "7 May 2023", 1, 3 / 4, "the comma is a word of BLEU's, not of F1's"],
  ["She went there on 7 May 2023", "7 May 2023", 6 / 10, 3 / 7, "a longer answer has no brevity penalty"],
  ["May", "7 May 2023", 2 / 4, Math.exp(1 - 3), "1 of 1 word, and a third of gold's length"],
  [
    "the the the",
    "the cat",
    2 / 3,
    1 / 3,
    "F1 counts a word once; BLEU clips it to the one time that it stands in gold",
  ],
  ["adoption agencies", "Adoption agencies.", 1, Math.exp(1 - 3 / 2), "gold's period is a third word of BLEU's"],
  ["a transgender woman", "Transgender woman", 4 / 5, 2 / 3, "articles count"],
  ["painting, swimming", "pottery, camping, painting, swimming", 4 / 6, Math.exp(1 - 7 / 3), "gold is taken whole"],
  ["She doesn't know", "doesn't know", 4 / 5, 3 / 4, "n't is a word of BLEU's: she, does, n't, know"],
  ["Sweden", "Norway", 0, 0, "nothing is common, so nothing is smoothed"],
  ["", "Sweden", 0, 0, "no answer"],
  ["?!", "Sweden", 0, 0, "no word in the answer"],
];

describe("scores, worked by hand", () => {
  it.each(CASES)("%s | %s: %d, %d: %s", (answer, gold, f1, bleu) => {
    expect(tokenF1(answer, gold)).toBeCloseTo(f1, 12);
    expect(bleu1(answer, gold)).toBeCloseTo(bleu, 12);
  });

  it("leave punctuation with its word in F1, and take it for words in BLEU", () => {
    const answer = "Yes; she won $1,000 (twice).";
    // yes; she won $1 000 (twice) are 6 words, none of them yes or twice.
    expect(tokenF1(answer, "yes, twice")).toBe(0);
    // yes ; she won $ 1,000 ( twice ) . are 10 words; yes , twice are 3, 2 of them common.
    expect(bleu1(answer, "yes, twice")).toBeCloseTo(2 / 10, 12);
  });
});

describe("scoreAnswer", () => {
  it.each([1, 2, 3, 4])("scores category %i against gold whole", (category) => {
    // likely and she are common; `no;` is not `no`. 3 words answered, 4 of gold.
    expect(scoreAnswer("likely no she", "likely no; she wants", category).f1).toBeCloseTo((2 * 2) / (3 + 4), 12);
  });

  it("scores neither the adversarial category nor a question without a gold answer", () => {
    expect(scoreAnswer("anything", "something", 5)).toEqual({ f1: null, bleu1: null });
    expect(scoreAnswer("anything", null, 1)).toEqual({ f1: null, bleu1: null });
  });
});

describe("treebankWords", () => {
  it.each([
    ["It's 7:30, isn't it?", ["it", "'s", "7:30", ",", "is", "n't", "it", "?"]],
    [
      "Dr. Smith of the U.S. left. He cannot return...",
      "dr. smith of the u.s. left . he can not return ...".split(" "),
    ],
    ['She said "no way."', ["she", "said", "``", "no", "way", ".", "''"]],
    ["the dogs' bowl -- and 'em all", ["the", "dogs", "'", "bowl", "--", "and", "'", "em", "all"]],
    ["I'm gonna; they've 50% [now]", "i 'm gon na ; they 've 50 % [ now ]".split(" ")],
    ["  ", []],
  ])("splits %j", (text, words) => {
    expect(treebankWords(text)).toEqual(words);
  });
});

describe("any scores", () => {
  const word = fc.stringMatching(/^[a-z0-9]{1,6}$/);
  const words = fc.array(word, { minLength: 1, maxLength: 12 });

  it("do not depend on the order of words, and F1 not on which text is gold", () => {
    fc.assert(
      fc.property(words, words, (said, wanted) => {
        const [answer, gold] = [said.join(" "), wanted.join(" ")];
        expect(tokenF1(said.toReversed().join(" "), gold)).toBe(tokenF1(answer, gold));
        expect(bleu1(said.toSorted().join(" "), gold)).toBe(bleu1(answer, gold));
        expect(tokenF1(gold, answer)).toBe(tokenF1(answer, gold));
      }),
    );
  });
});
