/** Buffers a body of up to `maxBytes`: gives its text, null where it is longer, and the body to be read again. */
export async function bufferBody(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly whole: string | null; readonly body: AsyncIterable<Uint8Array> }> {
  const iterator = body[Symbol.asyncIterator]();
  const held: Uint8Array[] = [];
  let length = 0;
  for (let read = await iterator.next(); !read.done; read = await iterator.next()) {
    held.push(read.value);
    length += read.value.length;
    if (length > maxBytes) return { whole: null, body: rejoined(held, iterator) };
  }
  return { whole: Buffer.concat(held).toString("utf8"), body: rejoined(held, iterator) };
}

/** A body from its start: the chunks read so far, then the rest. */
export async function* rejoined(
  held: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* held;
    for (let read = await rest.next(); !read.done; read = await rest.next()) yield read.value;
  } finally {
    await rest.return?.();
  }
}
