import { open } from "node:fs/promises";

/** What {@link isLabelledRandom} looks for; `writeRandomModel` writes it. */
const KEY = "memstem.random_weights";
/** The label stands with the first of the metadata, before vocabularies. */
const HEAD_BYTES = 64 * 1024;
/** GGUF's number for a truth value. */
const BOOL = 7;

/** Whether a GGUF file says of itself that its weights are random, so that its text is noise. Rejects where it cannot be read. */
export async function isLabelledRandom(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    const { bytesRead } = await file.read(head, 0, HEAD_BYTES, 0);
    const at = head.subarray(0, bytesRead).indexOf(KEY, 0, "latin1");
    const value = at + KEY.length;
    // A key is followed by its value's type, four bytes, and the value.
    return at >= 0 && value + 5 <= bytesRead && head.readUInt32LE(value) === BOOL && head[value + 4] === 1;
  } finally {
    await file.close();
  }
}
