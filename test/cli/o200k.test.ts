import { describe, expect, it } from "vitest";
import { countO200k } from "../../src/cli/o200k.js";

/** Characters; the table of `npm run bench:scans` has what they cost at 4 MiB. */
const SHORT = 4_000;

describe("counting tokens", () => {
  it.each([" ", "\n", "\t", "\n  ", "a", "ab", "!", "茶", "1", "\u0301"])(
    "takes no longer for a run of %j than in proportion: it is cut into words that merge quickly",
    (piece) => {
      const run = (characters: number) => piece.repeat(characters / piece.length);
      const ms = (text: string) => {
        const start = process.cpuUsage();
        countO200k(text);
        const { user, system } = process.cpuUsage(start);
        return (user + system) / 1_000;
      };
      ms(run(SHORT));
      // In the square of its length it would be some minutes.
      expect(ms(run(30 * SHORT))).toBeLessThan(2_000);
    },
  );

  it("estimates very long texts from pieces of them, well", () => {
    const words = Array.from({ length: 60_000 }, (_, at) => `word${(at * 7919) % 1_000} `).join("");
    expect(words.length).toBeGreaterThan(400_000);
    const halves = [words.slice(0, 60_000), words.slice(60_000, 120_000)].map(countO200k);
    const perCharacter = ((halves[0] ?? 0) + (halves[1] ?? 0)) / 120_000;
    expect(countO200k(words) / (words.length * perCharacter)).toBeCloseTo(1, 1);
    expect(countO200k("😀".repeat(100_000))).toBeGreaterThan(50_000);
  });
});
