import { type FileHandle, open, rm } from "node:fs/promises";

/** A typed value of a GGUF file's metadata. */
export type GgufValue =
  | { readonly type: "uint32"; readonly value: number }
  | { readonly type: "float32"; readonly value: number }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "int32s"; readonly value: readonly number[] }
  | { readonly type: "strings"; readonly value: readonly string[] };

/** How a tensor is stored: as 32-bit floats, or in blocks of 32 signed bytes with one half-precision scale. */
export type GgufTensorType = "float32" | "q8_0";

/** One tensor of a model. */
export interface GgufTensor {
  readonly name: string;
  readonly type: GgufTensorType;
  /** Elements along each dimension, the contiguous one first; for `q8_0` that is a multiple of 32. */
  readonly shape: readonly number[];
  /** Its bytes in pieces, so that no whole tensor is in memory; each is written before the next is requested. */
  bytes(): Iterable<Uint8Array>;
}

/** Numbers as the GGUF specification (ggml/docs/gguf.md) gives them. */
const VERSION = 3;
const ALIGNMENT = 32;
const VALUE_TYPES = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;
const TENSOR_TYPES = {
  float32: { id: 0, elements: 1, bytes: 4 },
  q8_0: { id: 8, elements: 32, bytes: 34 },
} as const satisfies Record<GgufTensorType, { id: number; elements: number; bytes: number }>;

/** Bytes that a tensor takes, without padding. */
export function tensorBytes({ type, shape }: Pick<GgufTensor, "type" | "shape">): number {
  const { elements, bytes } = TENSOR_TYPES[type];
  return (shape.reduce((product, length) => product * length, 1) / elements) * bytes;
}

/**
 * Writes a GGUF file (version 3, little-endian) and returns its size in bytes. Holds the metadata and one piece of a tensor in memory.
 * Rejects where the file exists; an incomplete file is removed.
 */
export async function writeGguf(
  path: string,
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[],
): Promise<number> {
  const file = await open(path, "wx");
  try {
    const size = await writeTo(file, metadata, tensors);
    await file.close();
    return size;
  } catch (error) {
    await file.close();
    await rm(path, { force: true });
    throw error;
  }
}

async function writeTo(
  file: FileHandle,
  metadata: Readonly<Record<string, GgufValue>>,
  tensors: readonly GgufTensor[],
): Promise<number> {
  let written = 0;
  const write = async (bytes: Uint8Array) => {
    for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
    written += bytes.length;
  };
  const align = () => write(new Uint8Array(padding(written)));
  await write(headOf(metadata, tensors));
  await align();
  for (const tensor of tensors) {
    const start = written;
    for (const piece of tensor.bytes()) await write(piece);
    if (written - start !== tensorBytes(tensor))
      throw new RangeError(`${tensor.name} does not have the bytes of its shape`);
    await align();
  }
  return written;
}

function headOf(metadata: Readonly<Record<string, GgufValue>>, tensors: readonly GgufTensor[]): Uint8Array {
  const pieces: Uint8Array[] = [
    Buffer.from("GGUF"),
    uint32(VERSION),
    uint64(tensors.length),
    uint64(Object.keys(metadata).length),
  ];
  for (const [key, value] of Object.entries(metadata)) pieces.push(text(key), ...encoded(value));
  let offset = 0;
  for (const tensor of tensors) {
    const { name, type, shape } = tensor;
    pieces.push(text(name), uint32(shape.length), ...shape.map(uint64), uint32(TENSOR_TYPES[type].id), uint64(offset));
    const bytes = tensorBytes(tensor);
    offset += bytes + padding(bytes);
  }
  return Buffer.concat(pieces);
}

function encoded(given: GgufValue): Uint8Array[] {
  switch (given.type) {
    case "uint32":
      return [uint32(VALUE_TYPES.uint32), uint32(given.value)];
    case "float32":
      return [uint32(VALUE_TYPES.float32), float32(given.value)];
    case "bool":
      return [uint32(VALUE_TYPES.bool), Uint8Array.of(given.value ? 1 : 0)];
    case "string":
      return [uint32(VALUE_TYPES.string), text(given.value)];
    case "int32s":
      return [...arrayHead(VALUE_TYPES.int32, given.value), ...given.value.map(uint32)];
    case "strings":
      return [...arrayHead(VALUE_TYPES.string, given.value), ...given.value.map(text)];
  }
}

function arrayHead(type: number, values: readonly unknown[]): Uint8Array[] {
  return [uint32(VALUE_TYPES.array), uint32(type), uint64(values.length)];
}

function padding(bytes: number): number {
  return (ALIGNMENT - (bytes % ALIGNMENT)) % ALIGNMENT;
}

function uint32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}

function uint64(value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function float32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function text(value: string): Uint8Array {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}
