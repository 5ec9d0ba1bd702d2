import { open } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import type { Llama } from "node-llama-cpp";
import { EmbeddedEngineError } from "./embedded-engine-error.js";

const COMPLAINTS = 3;
const COMPLAINT_MS = 50;

/** `node-llama-cpp`, as it is imported. */
export type LlamaModule = typeof import("node-llama-cpp");

/** llama.cpp, loaded into this process. Its log is one for the process: complaints reach whoever loaded it last. */
export interface LoadedLlama {
  readonly module: LlamaModule;
  readonly llama: Llama;
  /** What llama.cpp said last of what went wrong, which is more than its errors say; empty where it said nothing. */
  complaint(): Promise<string>;
}

/**
 * Loads llama.cpp's prebuilt CPU form; nothing is compiled or fetched. Throws {@link EmbeddedEngineError} where `node-llama-cpp`, which
 * nobody needs who brings an engine of their own, is not installed or has no binary for this machine.
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
        // They are handed over from another thread, later than the error.
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

/** What an error of the library says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const HEAD_BYTES = 24;
/** More than any model has; a file that claims more is none. */
const MOST_ENTRIES = 10_000_000n;

/**
 * Why a file cannot be a GGUF model, or null where it can. Reads its first bytes only. `node-llama-cpp` takes any number in them for true
 * and reads on past the file's end, for minutes.
 */
export async function notGguf(path: string): Promise<string | null> {
  const head = Buffer.alloc(HEAD_BYTES);
  try {
    const file = await open(path, "r");
    try {
      if ((await file.read(head, 0, HEAD_BYTES, 0)).bytesRead < HEAD_BYTES) return "it is no GGUF file";
    } finally {
      await file.close();
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (head.toString("latin1", 0, 4) !== "GGUF") return "it is no GGUF file";
  const version = head.readUInt32LE(4);
  if (version < 2 || version > 3) return `it says that it is GGUF version ${version}, which nothing reads`;
  const entries = [head.readBigUInt64LE(8), head.readBigUInt64LE(16)];
  return entries.some((number) => number > MOST_ENTRIES) ? "its head makes no sense" : null;
}
