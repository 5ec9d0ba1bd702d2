import { describe, expect, it } from "vitest";
import { EngineWork, type PromptWork } from "../../../src/core/index.js";

/** Of prompts with so many computed tokens, tokens, and of each such a part. */
function meanOf(...prompts: readonly (readonly [number, number, number])[]) {
  const sum = (of: (computed: number, tokens: number) => number) =>
    prompts.reduce((all, [computed, tokens, part]) => all + part * of(computed, tokens), 0);
  const [count, computed] = [sum(() => 1), sum((each) => each)];
  // Its attended pairs are the mean of theirs.
  const pairs = sum((each, tokens) => each * (tokens - each / 2));
  return {
    count: expect.closeTo(count, 9),
    computedTokens: expect.closeTo(computed / count, 6),
    promptTokens: expect.closeTo(pairs / computed + computed / count / 2, 6),
  };
}

describe("what an engine works on", () => {
  it("counts what is known: nothing of a prompt that was not sent here, the engine's own counts, and the newest thousand prompts", () => {
    const work = new EngineWork();
    const byTokens = ({ computedTokens }: PromptWork) => computedTokens;
    expect(work.meanPrompt("a", byTokens)).toBeNull();
    work.begins("a", { sentAt: 0, firstAt: 500 }, { computedTokens: 300, promptTokens: 400 });
    work.begins("b", { sentAt: 450, firstAt: 500 }, { computedTokens: 100, promptTokens: 400 });
    // Of a, whose first token comes at the same time, b waits for 50 of 300 ms.
    expect(work.meanPrompt("a", byTokens)).toEqual(meanOf([300, 400, 1], [100, 400, 1]));
    expect(work.meanPrompt("b", byTokens)).toEqual(meanOf([300, 400, 50 / 300], [100, 400, 1]));
    work.counted("b", { computedTokens: 900, promptTokens: 1_000 });
    expect(work.meanPrompt("a", byTokens)).toEqual(meanOf([300, 400, 1], [900, 1_000, 1]));
    work.begins("b", { sentAt: 0, firstAt: 900 }, { computedTokens: 1, promptTokens: 1 });
    expect(work.meanPrompt("a", byTokens)).toEqual(meanOf([300, 400, 1], [900, 1_000, 1]));
    for (let n = 0; n < 1_100; n++)
      work.begins(`n${n}`, { sentAt: 600 + n, firstAt: 601 + n }, { computedTokens: 1, promptTokens: 1 });
    expect(work.meanPrompt("a", byTokens)).toBeNull();
  });
});
