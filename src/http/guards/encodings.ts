import { once } from "node:events";
import * as zlib from "node:zlib";

/** A body's encoding is not supported, or more than one (`accepted` lists those that are), or the body is not in it (`accepted` is null). */
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

/** The value of a `content-encoding` header; null: none. */
export function encodingIn(header = ""): string | null {
  const names = header.split(",").map((name) =>
    name
      .trim()
      .toLowerCase()
      .replace(/^x-gzip$/, "gzip"),
  );
  return names.filter((name) => name !== "" && name !== "identity").join() || null;
}

/**
 * Decodes a body. Null: it is longer than `maxBytes`. Throws {@link UndecodableBodyError}, and what `take` throws.
 *
 * @param take called with the length of every decoded chunk
 */
export async function decodedBody(
  body: Buffer,
  encoding: string,
  maxBytes: number,
  take: (length: number) => void,
): Promise<Buffer | null> {
  const decode = DECODERS.get(encoding);
  if (decode === undefined) throw new UndecodableBodyError("content-encoding", `must be one of ${ACCEPTED}`, ACCEPTED);
  // A body that is absent has no encoding.
  if (body.length === 0) return body;
  const decoder = decode(body);
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
    throw notIn(encoding);
  } finally {
    decoder.destroy();
    if (!decoder.closed) await once(decoder, "close");
  }
  if (decoder.bytesWritten < body.length) throw notIn(encoding);
  return Buffer.concat(chunks);
}

function notIn(name: string): UndecodableBodyError {
  return new UndecodableBodyError("body", `is not ${name}`, null);
}
