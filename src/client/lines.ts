import { MemprefixError } from "./errors.js";

/** The JSON lines of a streamed answer. Stops the transfer when its reader stops. Throws {@link MemprefixError} where it breaks off. */
export async function* jsonLines(
  { body }: Response,
  signal: AbortSignal | undefined,
): AsyncGenerator<unknown, void, undefined> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      const lines = `${rest}${done ? "" : decoder.decode(value, { stream: true })}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line);
      if (!done) continue;
      if (rest !== "") throw new Error("it ended within a line");
      return;
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw new MemprefixError("the batch's answer broke off", null, null, { cause: error });
  } finally {
    await reader.cancel().catch(() => {});
  }
}

export function lineBody(
  requests: Iterable<unknown> | AsyncIterable<unknown>,
  write: (request: unknown) => string,
): { readonly body: string | ReadableStream<Uint8Array>; readonly stop: () => Promise<void> } {
  if (Array.isArray(requests)) {
    return { body: requests.map((request) => `${write(request)}\n`).join(""), stop: async () => {} };
  }
  const all = Symbol.asyncIterator in requests ? requests[Symbol.asyncIterator]() : requests[Symbol.iterator]();
  const encoder = new TextEncoder();
  const stop = async () => void (await all.return?.());
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await all.next();
      if (done === true) controller.close();
      else controller.enqueue(encoder.encode(`${write(value)}\n`));
    },
    cancel: stop,
  });
  return { body, stop };
}
