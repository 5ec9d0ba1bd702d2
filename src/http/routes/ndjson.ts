import { utf8Text } from "../requests/utf8.js";

/** One line of a stream: its text, or that it was longer than a line may be (the rest of it was skipped). */
export type Line = { readonly text: string } | { readonly tooLong: true } | { readonly notText: true };

const NEWLINE = 0x0a;

/**
 * Splits a stream of bytes at line breaks; lines of nothing but white space are left out. Holds one line at most: of one with more than
 * `maxBytes` only the fact is handed over. A line whose bytes are no UTF-8 is said to be none.
 */
export async function* linesOf(
  stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<Line, void, undefined> {
  let parts: Uint8Array[] = [];
  let length = 0;
  const take = (): Line | null => {
    const line = length > maxBytes ? ({ tooLong: true } as const) : readLine(parts, length);
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

function readLine(parts: readonly Uint8Array[], length: number): Line {
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
