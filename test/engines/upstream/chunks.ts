import fc from "fast-check";

/** Bytes in chunks of these sizes, over and over. */
export async function* inChunks(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length] ?? 1;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

export const chunkSizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
