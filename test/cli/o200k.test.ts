import fc from "fast-check";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it } from "vitest";
import { countO200k, encodeO200k } from "../../src/cli/o200k.js";
import { digestOf } from "../../src/core/text/ids.js";
import { cpuTimer } from "../cpu-time.js";

const SHORT = 4_000;

function cpuMs(work: () => unknown): number {
  const elapsed = cpuTimer();
  work();
  return elapsed();
}

describe("counting tokens", () => {
  it("gives the tokenizer's own count of any text without long runs, whatever was counted before", () => {
    const word = fc.oneof(
      fc.constantFrom(
        ...["don't", "HelloWORLD", "3.14159", "<|endoftext|>", "  ", "\n\n ", "\r\n", "naïve", "茶を飲む", "👩‍👩‍👧"],
        ...["e\u0301", "//", "..."],
      ),
      fc.string({ unit: "binary", maxLength: 20 }),
      fc.string({ unit: "grapheme", maxLength: 20 }),
      fc.lorem({ maxCount: 5 }),
    );
    const asText = { disallowedSpecial: new Set<string>() };
    fc.assert(
      fc.property(fc.array(word, { maxLength: 24 }), fc.constantFrom("", " "), (words, between) => {
        const text = words.join(between);
        fc.pre(!/\S{129}|\s{129}/.test(text));
        expect(countO200k(text)).toBe(countTokens(text, asText));
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([" ", "\n", "\t", "\n  ", "a", "ab", "!", "茶", "1", "\u0301"])(
    "takes no longer for a run of %j than in proportion: it is cut into words that merge quickly",
    (piece) => {
      const run = (characters: number) => piece.repeat(characters / piece.length);
      const ms = (text: string) => cpuMs(() => countO200k(text));
      ms(run(SHORT));
      // In the square of its length it would be some minutes.
      expect(ms(run(30 * SHORT))).toBeLessThan(2_000);
    },
  );

  it("takes no longer the more words it has seen", () => {
    const text = "/think".repeat(2_500);
    const fastest = () => Math.min(...Array.from({ length: 5 }, () => cpuMs(() => countO200k(text))));
    const before = fastest();
    for (let at = 0; at < 20_000; at += 1_000)
      countO200k(Array.from({ length: 1_000 }, (_, n) => digestOf(`${at + n}`).slice(0, 12)).join(" "));
    expect(fastest()).toBeLessThan(5 * before + 1);
  });

  it("counts what stands around a long word as it does without it", () => {
    const words = "The tea is green, and it was drunk on 7 May.\n\n".repeat(50);
    const url = `https://example.com/${"abc/".repeat(100)}`;
    const apart = countO200k(words) * 2 + countO200k(url);
    expect(Math.abs(countO200k(words + url + words) - apart)).toBeLessThan(5);
    expect(encodeO200k(words + url + words).length).toBe(countO200k(words + url + words));
  });

  it("estimates very long texts from pieces of them, well", () => {
    const words = Array.from({ length: 60_000 }, (_, at) => `word${(at * 7919) % 1_000} `).join("");
    expect(words.length).toBeGreaterThan(400_000);
    const halves = [words.slice(0, 60_000), words.slice(60_000, 120_000)].map(countO200k);
    const perCharacter = ((halves[0] ?? 0) + (halves[1] ?? 0)) / 120_000;
    expect(countO200k(words) / (words.length * perCharacter)).toBeCloseTo(1, 1);
    expect(countO200k("😀".repeat(100_000))).toBeGreaterThan(50_000);
  });
});
