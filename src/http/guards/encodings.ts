import { once } from "node:events";
import * as zlib from "node:zlib";

/** A body's encoding is not supported (`accepted` lists those that are), or the body is not in it (`accepted` is null). */
export class UndecodableBodyError extends Error {
  override readonly name = "UndecodableBodyError";
  constructor(
    readonly field: "body" | "content-encoding",
    override readonly message: string,
    readonly accepted: string | null,
  ) {
    super(message);
  }
}

type Decoder = (body: Buffer) => zlib.Gunzip | zlib.BrotliDecompress;

/** Clients and servers use both forms: with the header of zlib (RFC 9110 §8.4.1.2), and without. */
const inflate: Decoder = (body) => (hasZlibHeader(body) ? zlib.createInflate() : zlib.createInflateRaw());

function hasZlibHeader(body: Buffer): boolean {
  return body.length >= 2 && (body.readUInt8(0) & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0;
}

/** Node has it from 22.15 on. */
const zstd = Reflect.get(zlib, "createZstdDecompress") as (() => zlib.Gunzip) | undefined;

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ...(zstd === undefined ? [] : [["zstd", zstd] as const]),
  ["gzip", () => zlib.createGunzip()],
  ["br", () => zlib.createBrotliDecompress()],
  ["deflate", inflate],
]);
const ACCEPTED = [...DECODERS.keys()].join(", ");
const MAX_ENCODINGS = 3;

/** The encodings of a `content-encoding` header, in the order in which they were applied. */
export function encodingsIn(header = ""): readonly string[] {
  return header
    .split(",")
    .map((name) =>
      name
        .trim()
        .toLowerCase()
        .replace(/^x-gzip$/, "gzip"),
    )
    .filter((name) => name !== "" && name !== "identity");
}

/**
 * Decodes a body. Null: it is longer than `maxBytes`, decoded in whole or in part. Throws {@link UndecodableBodyError}, and what `take` throws.
 *
 * @param take called with the length of every decoded chunk
 */
export async function decodedBody(
  body: Buffer,
  encodings: readonly string[],
  maxBytes: number,
  take: (length: number) => void,
): Promise<Buffer | null> {
  const decoders = encodings.map((name) => DECODERS.get(name));
  if (decoders.length > MAX_ENCODINGS || decoders.includes(undefined)) {
    const message = `must be at most ${MAX_ENCODINGS} of ${ACCEPTED}`;
    throw new UndecodableBodyError("content-encoding", message, ACCEPTED);
  }
  let whole = body;
  for (const [at, name] of [...encodings.entries()].reverse()) {
    // A body that is absent has no encoding.
    const decoder = whole.length === 0 && whole === body ? undefined : decoders[at]?.(whole);
    const next = decoder === undefined ? whole : await decodedBy(decoder, whole, name, maxBytes, take);
    if (next === null) return null;
    whole = next;
  }
  return whole;
}

async function decodedBy(
  decoder: zlib.Gunzip | zlib.BrotliDecompress,
  body: Buffer,
  name: string,
  maxBytes: number,
  take: (length: number) => void,
): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  let isTaken = true;
  try {
    decoder.end(body);
    for await (const chunk of decoder as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) return null;
      isTaken = false;
      take(chunk.length);
      isTaken = true;
      chunks.push(chunk);
    }
  } catch (error) {
    if (!isTaken) throw error;
    throw notIn(name);
  } finally {
    decoder.destroy();
    if (!decoder.closed) await once(decoder, "close");
  }
  if (decoder.bytesWritten < body.length) throw notIn(name);
  return Buffer.concat(chunks);
}

function notIn(name: string): UndecodableBodyError {
  return new UndecodableBodyError("body", `is not ${name}`, null);
}
