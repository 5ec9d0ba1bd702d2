/** Bytes of an event that are looked at. */
const MAX_EVENT_BYTES = 64 * 1024;
const EVENT = /^(?:(?:event|id|retry):[^\n]*\n)*(?:data|error): ?(\{[^\n]*\})\r?\n/;

/**
 * Looks at what has come of a stream of events, and waits for nothing more: some engines begin it before they know that they refuse the
 * prompt, and say so in its first event. Gives the body back, that event's JSON where it holds an error, and what ends the stream for whoever
 * does not read the body.
 */
export async function peekAtError(body: AsyncIterable<Uint8Array>): Promise<{
  readonly error: string | null;
  readonly body: AsyncIterable<Uint8Array>;
  readonly end: () => Promise<void>;
}> {
  const bytes = body[Symbol.asyncIterator]();
  const first = await bytes.next();
  const text = first.done === true ? "" : Buffer.from(first.value.subarray(0, MAX_EVENT_BYTES)).toString("utf8");
  const json = EVENT.exec(text)?.[1] ?? "";
  const end = async () => {
    await bytes.return?.();
  };
  return { error: json.includes('"error"') ? json : null, body: resumed(first, bytes), end };
}

async function* resumed(
  first: IteratorResult<Uint8Array>,
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for (let read = first; read.done !== true; read = await rest.next()) yield read.value;
  } finally {
    await rest.return?.();
  }
}
