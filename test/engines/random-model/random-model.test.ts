import { readFileSync } from "node:fs";
import { join } from "node:path";
import { encode } from "gpt-tokenizer/encoding/r50k_base";
import { describe, expect, it } from "vitest";
import {
  gpt2Vocabulary,
  MODEL_SHAPES,
  randomBlocks,
  writeRandomModel,
} from "../../../src/engines/random-model/random-model.js";
import { llamaMissing, TINY, tinyModel } from "./tiny-model.js";

const missing = await llamaMissing();
const TEXT = "The quick brown fox — naïve 日本語 🎉\n\n  indented\t12345 don't";

describe("random weights", () => {
  const bytes = (seed: number, deviation = 0.02) =>
    Buffer.concat([...randomBlocks(34_000, deviation, seed)].map((piece) => Buffer.from(piece)));

  it("are the same for the same seed only", () => {
    expect(bytes(1).equals(bytes(1))).toBe(true);
    expect(bytes(1).equals(bytes(2))).toBe(false);
  });

  it.each([0.02, 0.125])("deviate by about %d", (deviation) => {
    const blocks = bytes(3, deviation);
    const scale = 2 ** ((blocks.readUInt16LE(0) >> 10) - 15);
    const weights = Array.from(
      { length: 1_000 * 32 },
      (_, n) => scale * blocks.readInt8(Math.floor(n / 32) * 34 + 2 + (n % 32)),
    );
    const measured = Math.sqrt(weights.reduce((sum, weight) => sum + weight * weight, 0) / weights.length);
    expect(measured / deviation).toBeGreaterThan(0.69);
    expect(measured / deviation).toBeLessThan(1.44);
  });

  it("come in whole blocks", () => {
    expect(() => [...randomBlocks(33, 0.02, 1)]).toThrow(RangeError);
  });
});

describe("the byte-pair vocabulary", () => {
  it("has a merge for each token that is no byte, made of earlier tokens", async () => {
    const { tokens, merges } = await gpt2Vocabulary();
    expect(tokens).toHaveLength(50_256);
    expect(merges).toHaveLength(50_000);
    expect(merges.slice(0, 3)).toEqual(["Ġ t", "Ġ a", "h e"]);
    const known = new Set(tokens);
    expect(merges.every((merge) => known.has(merge.replace(" ", "")))).toBe(true);
  });
});

describe("a random model", () => {
  const model = tinyModel();

  it("says in its metadata that its weights are random", () => {
    const head = readFileSync(model.path).toString("latin1", 0, 2_000);
    expect(head).toContain("memprefix.random_weights");
    expect(head).toContain("Whatever text it makes is noise.");
  });

  it("has the same bytes for the same seed", async () => {
    const again = join(model.path, "..", "again.gguf");
    await writeRandomModel(again, { name: "tiny", shape: TINY });
    expect(readFileSync(again).equals(readFileSync(model.path))).toBe(true);
  });

  it("has its size's parameters", () => {
    for (const [size, shape] of Object.entries(MODEL_SHAPES)) {
      const { hidden, heads, keyValueHeads, feedForward, layers, vocabulary } = shape;
      const layer = hidden * (64 * (2 * heads + 2 * keyValueHeads) + 3 * feedForward);
      expect(`${Math.round((layers * layer + (vocabulary + 3) * hidden) / 1e6)}m`).toBe(size);
    }
  });

  it.skipIf(missing !== null)(
    `is loaded by llama.cpp, which cuts text as GPT-2 does and evaluates it${missing === null ? "" : ` (skipped: ${missing})`}`,
    async () => {
      const { getLlama, LlamaLogLevel } = await import("node-llama-cpp");
      const path = join(model.path, "..", "gpt2.gguf");
      await writeRandomModel(path, { name: "tiny", shape: { ...TINY, vocabulary: 50_256 } });
      const llama = await getLlama({ gpu: false, build: "never", progressLogs: false, logLevel: LlamaLogLevel.error });
      try {
        const loaded = await llama.loadModel({ modelPath: path });
        const tokens = loaded.tokenize(TEXT);
        expect(tokens).toEqual(encode(TEXT));
        expect(loaded.detokenize(tokens)).toBe(TEXT);
        expect(loaded.isEogToken(loaded.tokenize("<|im_end|>", true)[0])).toBe(true);
        const context = await loaded.createContext({ contextSize: 256, threads: 1 });
        const sequence = context.getSequence();
        for await (const token of sequence.evaluate(tokens)) {
          expect(token).toBeLessThan(50_259);
          break;
        }
        expect(sequence.nextTokenIndex).toBe(tokens.length);
      } finally {
        await llama.dispose();
      }
    },
  );
});
