import { utf8Text } from "./safe-json.js";

/** A line's text, or why there is none. A line that is too long is skipped to its end. */
export type NdjsonLine = { readonly text: string } | { readonly tooLong: true } | { readonly notText: true };

export const NEWLINE = 0x0a;

/** Splits a byte stream at line breaks and drops blank lines. Buffers one line of at most `maxBytes`. */
export async function* linesOf(
  stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<NdjsonLine, void, undefined> {
  let parts: Uint8Array[] = [];
  let length = 0;
  const take = (): NdjsonLine | null => {
    const line = length > maxBytes ? ({ tooLong: true } as const) : lineOf(parts, length);
    parts = [];
    length = 0;
    return "text" in line && line.text.trim() === "" ? null : line;
  };
  for await (const chunk of stream) {
    let rest: Uint8Array = chunk;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      length += end;
      if (length <= maxBytes) parts.push(rest.subarray(0, end));
      const line = take();
      if (line !== null) yield line;
      rest = rest.subarray(end + 1);
    }
    length += rest.length;
    if (length <= maxBytes) parts.push(rest);
    else parts = [];
  }
  const line = take();
  if (line !== null) yield line;
}

function lineOf(parts: readonly Uint8Array[], length: number): NdjsonLine {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  try {
    return { text: utf8Text(bytes) };
  } catch {
    return { notText: true };
  }
}
