import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { writeRandomModel } from "../../../src/engines/random-model/random-model.js";

/** Small enough to be loaded and evaluated in milliseconds. */
export const TINY = { layers: 2, hidden: 64, feedForward: 128, heads: 1, keyValueHeads: 1, vocabulary: 1_024 } as const;

/** A tiny random model in a file that lives as long as the tests of one `describe`. */
export function tinyModel(): { readonly path: string } {
  let folder = "";
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "memprefix-model-"));
    await writeRandomModel(join(folder, "tiny.gguf"), { name: "tiny", shape: TINY });
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  return {
    get path() {
      return join(folder, "tiny.gguf");
    },
  };
}

/** Why llama.cpp cannot run here, or null where it can. Skipped tests say it in their title. */
export async function llamaMissing(): Promise<string | null> {
  try {
    const { getLlama, LlamaLogLevel } = await import("node-llama-cpp");
    const llama = await getLlama({ gpu: false, build: "never", progressLogs: false, logLevel: LlamaLogLevel.error });
    await llama.dispose();
    return null;
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
    return missing ? "node-llama-cpp is not installed" : `llama.cpp cannot be loaded: ${String(error)}`;
  }
}
