import { promisify } from "node:util";
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

type Decoder = (body: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;

const [inflate, inflateRaw] = [promisify(zlib.inflate), promisify(zlib.inflateRaw)] as const;
/** Node has it from 22.15 on. */
const zstd = Reflect.get(zlib, "zstdDecompress") as typeof zlib.gunzip | undefined;

const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ...(zstd === undefined ? [] : [["zstd", promisify(zstd)] as const]),
  ["gzip", promisify(zlib.gunzip)],
  ["br", promisify(zlib.brotliDecompress)],
  // Clients and servers use both forms: with the header of zlib (RFC 9110 §8.4.1.2), and without.
  ["deflate", (body, options) => (hasZlibHeader(body) ? inflate : inflateRaw)(body, options)],
]);
const ACCEPTED = [...DECODERS.keys()].join(", ");

function hasZlibHeader(body: Buffer): boolean {
  return body.length >= 2 && (body.readUInt8(0) & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0;
}

const MAX_ENCODINGS = 3;

/** The encodings of a `content-encoding` header, in the order in which they were applied. */
export function encodingsIn(header = ""): readonly string[] {
  const names = header.split(",").map((name) => name.trim().toLowerCase());
  return names.filter((name) => name !== "" && name !== "identity").map((name) => name.replace(/^x-gzip$/, "gzip"));
}

/** One at a time: a small body may decode to the longest one allowed. */
let decoding: Promise<unknown> = Promise.resolve();

/** Decodes a body. Null: it is longer than `maxBytes`. Throws {@link UndecodableBodyError}. */
export async function decodedBody(
  body: Buffer,
  encodings: readonly string[],
  maxBytes: number,
): Promise<Buffer | null> {
  const decoders = encodings.flatMap((name) => DECODERS.get(name) ?? []);
  if (decoders.length < encodings.length || encodings.length > MAX_ENCODINGS) {
    const message = `must be at most ${MAX_ENCODINGS} of ${ACCEPTED}`;
    throw new UndecodableBodyError("content-encoding", message, ACCEPTED);
  }
  // A body that is absent has no encoding.
  if (body.length === 0) return body;
  const decoded = decoding.then(async () => {
    let whole = body;
    for (const decode of decoders.reverse()) whole = await decode(whole, { maxOutputLength: maxBytes });
    return whole;
  });
  decoding = decoded.catch(() => {});
  try {
    return await decoded;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw new UndecodableBodyError("body", `is not ${encodings.join(", ")}`, null);
  }
}
