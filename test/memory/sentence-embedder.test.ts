import { describe, expect, it } from "vitest";
import { EMBEDDING_DIMENSIONS, sentenceEmbedder } from "../../src/memory/embedded-store.js";
import { cpuTimer } from "../cpu-time.js";

const embedder = sentenceEmbedder();

function cosine(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
}

describe("sentenceEmbedder", () => {
  it("gives vectors of 512 numbers and length 1", async () => {
    const vector = await embedder.embedQuery("Ada drinks green tea");
    expect(vector).toHaveLength(EMBEDDING_DIMENSIONS);
    expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
  });

  it("puts what means the same nearer than what does not", async () => {
    const question = await embedder.embedQuery("What does she like to drink?");
    const [tea, bicycle] = await embedder.embedDocuments([
      "She loves a cup of green tea",
      "The bicycle has a flat tyre",
    ]);
    expect(cosine(question, tea ?? [])).toBeGreaterThan(cosine(question, bicycle ?? []) + 0.1);
  });

  it("gives the same vector for the same text", async () => {
    expect(await embedder.embedQuery("same")).toEqual(await embedder.embedQuery("same"));
  });

  it("gives one vector a text, in order, over several batches and whatever the texts are", async () => {
    const texts = ["", " ", "\n\t", "a\0b", "\ud800", "\u200b", "日本語", "👩‍👩‍👧 hi", "مرحبا", "plain English", "〷"];
    const vectors = await embedder.embedDocuments(texts);
    expect(vectors).toHaveLength(texts.length);
    for (const [index, vector] of vectors.entries()) {
      expect(vector.every(Number.isFinite), texts[index]).toBe(true);
      expect(cosine(vector, await embedder.embedQuery(texts[index] ?? ""))).toBeCloseTo(1, 4);
    }
    expect(await embedder.embedDocuments([])).toEqual([]);
  });

  it("takes a text of any length in bounded time", async () => {
    const cpuMs = cpuTimer();
    await embedder.embedQuery("word ".repeat(20_000));
    // The tokenizer alone would take over ten seconds for all of it.
    expect(cpuMs()).toBeLessThan(5_000);
  });

  it("reads as much of a long text as the model can", async () => {
    const text = Array.from({ length: 2_000 }, (_, index) => `word${index % 7}`).join(" ");
    const vector = await embedder.embedQuery(text);
    expect(await embedder.embedQuery(text.slice(0, 2_048))).toEqual(vector);
    expect(cosine(vector, await embedder.embedQuery(text.slice(0, 200)))).toBeLessThan(0.999);
  });

  it("lets the event loop turn between batches", async () => {
    let turns = 0;
    const count = () => {
      turns += 1;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);
    await embedder.embedDocuments(Array.from({ length: 20 }, (_, index) => `text ${index}`));
    clearImmediate(immediate);
    expect(turns).toBeGreaterThanOrEqual(4);
  });
});
