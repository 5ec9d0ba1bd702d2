import { open } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import type { Llama } from "node-llama-cpp";
import { EmbeddedEngineError } from "./embedded-engine-error.js";

const COMPLAINTS = 3;
const COMPLAINT_MS = 50;

/** `node-llama-cpp`, as it is imported. */
export type LlamaModule = typeof import("node-llama-cpp");

/** llama.cpp, loaded into this process. The process has one log: complaints go to the last one that loaded it. */
export interface LoadedLlama {
  readonly module: LlamaModule;
  readonly llama: Llama;
  /** llama.cpp's last error lines, which say more than its exceptions; empty for none. */
  complaint(): Promise<string>;
}

/**
 * Loads llama.cpp's prebuilt CPU binary; nothing is compiled or fetched. Throws {@link EmbeddedEngineError} where `node-llama-cpp`, an
 * optional package, is not installed or has no binary for this machine.
 */
export async function loadLlama(): Promise<LoadedLlama> {
  const module = await importLlama();
  let complaints: readonly string[] = [];
  try {
    const llama = await module.getLlama({
      gpu: false,
      build: "never",
      progressLogs: false,
      logLevel: module.LlamaLogLevel.error,
      logger: (_level, message) => {
        complaints = [...complaints, message.trim()].slice(-COMPLAINTS);
      },
    });
    return {
      module,
      llama,
      complaint: async () => {
        // Log lines come from another thread, later than the error.
        await setTimeout(COMPLAINT_MS);
        return complaints.join("; ");
      },
    };
  } catch (error) {
    throw new EmbeddedEngineError(
      "binary_missing",
      `node-llama-cpp has no binary that runs on this machine (${process.platform}-${process.arch}): ${messageOf(error)}`,
      { cause: error },
    );
  }
}

async function importLlama(): Promise<LlamaModule> {
  try {
    return await import("node-llama-cpp");
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
    if (!missing) throw error;
    throw new EmbeddedEngineError("package_missing", "node-llama-cpp is not installed: npm install node-llama-cpp", {
      cause: error,
    });
  }
}

/** The message of a library's error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const HEAD_BYTES = 24;
/** Tensors and metadata entries: more than any model has. */
const MOST_ENTRIES = 10_000_000n;

/**
 * Why a file cannot be a GGUF model, or null where it can. Reads its first bytes only. Needed because `node-llama-cpp` trusts the counts in
 * the header and, for a wrong one, reads past the file's end for minutes.
 */
export async function notGguf(path: string): Promise<string | null> {
  const head = Buffer.alloc(HEAD_BYTES);
  try {
    const file = await open(path, "r");
    try {
      if ((await file.read(head, 0, HEAD_BYTES, 0)).bytesRead < HEAD_BYTES) return "it is not a GGUF file";
    } finally {
      await file.close();
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (head.toString("latin1", 0, 4) !== "GGUF") return "it is not a GGUF file";
  const version = head.readUInt32LE(4);
  if (version < 2 || version > 3) return `GGUF version ${version} is not supported (2 and 3 are)`;
  const entries = [head.readBigUInt64LE(8), head.readBigUInt64LE(16)];
  return entries.some((number) => number > MOST_ENTRIES) ? "its header is not valid" : null;
}
