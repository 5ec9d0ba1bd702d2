import { open } from "node:fs/promises";

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
