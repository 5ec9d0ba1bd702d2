import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type GgufTensor, tensorBytes, writeGguf } from "../../../src/engines/random-model/gguf-writer.js";

describe("a GGUF file", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "memprefix-gguf-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const tensor = (name: string, bytes: Uint8Array, length = bytes.length / 4): GgufTensor => ({
    name,
    type: "float32",
    shape: [length],
    bytes: () => [bytes],
  });

  it("has its head as specified, and each tensor at an aligned place", async () => {
    const path = join(folder, "a.gguf");
    const size = await writeGguf(path, { "a.b": { type: "uint32", value: 7 } }, [
      tensor("x", Uint8Array.of(1, 1, 1, 1)),
      tensor("yy", Uint8Array.of(2, 2, 2, 2)),
    ]);
    const file = readFileSync(path);
    expect(file.length).toBe(size);
    expect(file.toString("latin1", 0, 4)).toBe("GGUF");
    expect([file.readUInt32LE(4), file.readBigUInt64LE(8), file.readBigUInt64LE(16)]).toEqual([3, 2n, 1n]);
    // key, type, value
    expect(file.toString("latin1", 32, 35)).toBe("a.b");
    expect([file.readUInt32LE(35), file.readUInt32LE(39)]).toEqual([4, 7]);
    // the second tensor's offset, the last eight bytes of the head
    const head = 43 + (8 + 1 + 4 + 8 + 4 + 8) + (8 + 2 + 4 + 8 + 4 + 8);
    expect(file.readBigUInt64LE(head - 8)).toBe(32n);
    const data = Math.ceil(head / 32) * 32;
    expect([file[data], file[data + 3], file[data + 4], file[data + 32]]).toEqual([1, 1, 0, 2]);
    expect(size).toBe(data + 64);
  });

  it("never replaces a file", async () => {
    const path = join(folder, "mine.gguf");
    writeFileSync(path, "mine");
    await expect(writeGguf(path, {}, [])).rejects.toMatchObject({ code: "EEXIST" });
    expect(readFileSync(path, "utf8")).toBe("mine");
  });

  it("is not left behind half-written", async () => {
    const path = join(folder, "half.gguf");
    await expect(writeGguf(path, {}, [tensor("x", new Uint8Array(4), 2)])).rejects.toThrow(/x does not have the bytes/);
    await expect(writeGguf(path, {}, [])).resolves.toBeGreaterThan(0);
  });

  it("counts a q8_0 tensor as 34 bytes for 32 numbers", () => {
    expect(tensorBytes({ type: "q8_0", shape: [64, 3] })).toBe(204);
    expect(tensorBytes({ type: "float32", shape: [5] })).toBe(20);
  });
});
