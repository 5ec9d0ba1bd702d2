/*
 * random-model/: models with random weights, to measure an engine's time and cache without a download.
 * In: a shape (layers, dimensions, vocabulary), a seed and a path.
 * Out: a GGUF file that llama.cpp loads, labelled as random; whether a file is so labelled.
 * `gguf-writer.ts` writes the file format.
 */

import { open } from "node:fs/promises";
import { type GgufTensor, type GgufValue, tensorBytes, writeGguf } from "./gguf-writer.js";

/** The dimensions of a llama-like model; heads have 64 dimensions. */
export interface ModelShape {
  readonly layers: number;
  readonly hidden: number;
  readonly feedForward: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  /** Tokens of GPT-2's vocabulary that it knows, beside three for chats. */
  readonly vocabulary: number;
}

const GPT2_TOKENS = 50_256;

/** Models by number of parameters: one that answers within a second on two cores, and one with the dimensions of SmolLM2-135M. */
export const MODEL_SHAPES = {
  "23m": { layers: 10, hidden: 256, feedForward: 1_024, heads: 4, keyValueHeads: 2, vocabulary: GPT2_TOKENS },
  "135m": { layers: 30, hidden: 576, feedForward: 1_536, heads: 9, keyValueHeads: 3, vocabulary: GPT2_TOKENS },
} as const satisfies Record<string, ModelShape>;
export type ModelSize = keyof typeof MODEL_SHAPES;
export const MODEL_SIZES = Object.keys(MODEL_SHAPES) as readonly ModelSize[];

/** The written file. */
export interface RandomModel {
  readonly bytes: number;
  readonly parameters: number;
}

const HEAD = 64;
/** Larger than any prompt worth measuring on a CPU; random weights have no training length. */
const CONTEXT = 32_768;
const CHAT_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] as const;
const CHAT_TEMPLATE =
  "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
/** The metadata that says that the weights are random. */
const LABEL = "memprefix.random_weights";
const NOTICE =
  "Random weights in a real architecture, written by memprefix to measure an engine's time and cache. Whatever text it makes is noise.";

/**
 * Writes a model with random weights in q8_0 as a GGUF file. An engine's times and cached tokens do not depend on the weights' values, so
 * measurements need no download. The metadata (`general.name`, `general.description`, `memprefix.random_weights`) says that its text is noise.
 * The same shape and seed give the same bytes. Rejects where the file exists or cannot be written.
 */
export async function writeRandomModel(
  path: string,
  { name, shape, seed = 1 }: { readonly name: string; readonly shape: ModelShape; readonly seed?: number },
): Promise<RandomModel> {
  const vocabulary = await gpt2Vocabulary(shape.vocabulary);
  const tensors = tensorsOf(shape, vocabulary.tokens.length + CHAT_TOKENS.length, seed);
  const bytes = await writeGguf(path, metadataOf(name, shape, vocabulary, seed), tensors);
  const parameters = tensors.reduce((sum, tensor) => sum + tensor.shape.reduce((a, b) => a * b, 1), 0);
  return { bytes, parameters };
}

function metadataOf(
  name: string,
  shape: ModelShape,
  { tokens, merges }: BytePairVocabulary,
  seed: number,
): Record<string, GgufValue> {
  const uint32 = (value: number): GgufValue => ({ type: "uint32", value });
  const text = (value: string): GgufValue => ({ type: "string", value });
  const [end, , messageEnd] = CHAT_TOKENS.map((_, n) => tokens.length + n) as [number, number, number];
  return {
    "general.architecture": text("llama"),
    "general.name": text(`memprefix random ${name} (random weights, its text is noise)`),
    "general.description": text(NOTICE),
    "general.file_type": uint32(7), // mostly q8_0
    "general.quantization_version": uint32(2),
    [LABEL]: { type: "bool", value: true },
    "memprefix.seed": uint32(seed),
    "llama.block_count": uint32(shape.layers),
    "llama.context_length": uint32(CONTEXT),
    "llama.embedding_length": uint32(shape.hidden),
    "llama.feed_forward_length": uint32(shape.feedForward),
    "llama.attention.head_count": uint32(shape.heads),
    "llama.attention.head_count_kv": uint32(shape.keyValueHeads),
    "llama.attention.key_length": uint32(HEAD),
    "llama.attention.value_length": uint32(HEAD),
    "llama.attention.layer_norm_rms_epsilon": { type: "float32", value: 1e-5 },
    "llama.rope.dimension_count": uint32(HEAD),
    "llama.rope.freq_base": { type: "float32", value: 10_000 },
    "llama.vocab_size": uint32(tokens.length + CHAT_TOKENS.length),
    "tokenizer.ggml.model": text("gpt2"),
    "tokenizer.ggml.pre": text("gpt-2"),
    "tokenizer.ggml.tokens": { type: "strings", value: [...tokens, ...CHAT_TOKENS] },
    // 1: ordinary, 3: control
    "tokenizer.ggml.token_type": { type: "int32s", value: [...tokens.map(() => 1), ...CHAT_TOKENS.map(() => 3)] },
    "tokenizer.ggml.merges": { type: "strings", value: merges },
    "tokenizer.ggml.bos_token_id": uint32(end),
    "tokenizer.ggml.eos_token_id": uint32(messageEnd),
    "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
    "tokenizer.chat_template": text(CHAT_TEMPLATE),
  };
}

function tensorsOf({ layers, hidden, feedForward, ...shape }: ModelShape, tokens: number, seed: number): GgufTensor[] {
  const queries = shape.heads * HEAD;
  const keys = shape.keyValueHeads * HEAD;
  let made = 0;
  // Scaled as at the start of training, so that activations neither vanish nor grow with depth.
  const matrix = (name: string, from: number, to: number, deviation = 1 / Math.sqrt(from)): GgufTensor => {
    const own = seed + 1_000_003 * ++made;
    const given = { name, type: "q8_0", shape: [from, to] } as const;
    return { ...given, bytes: () => randomBlocks(tensorBytes(given), deviation, own) };
  };
  const norm = (name: string): GgufTensor => ({
    name,
    type: "float32",
    shape: [hidden],
    bytes: () => [new Uint8Array(new Float32Array(hidden).fill(1).buffer)],
  });
  // No output matrix: tied to the embeddings, as in SmolLM2.
  return [
    matrix("token_embd.weight", hidden, tokens, 0.02),
    norm("output_norm.weight"),
    ...Array.from({ length: layers }, (_, n) => [
      norm(`blk.${n}.attn_norm.weight`),
      matrix(`blk.${n}.attn_q.weight`, hidden, queries),
      matrix(`blk.${n}.attn_k.weight`, hidden, keys),
      matrix(`blk.${n}.attn_v.weight`, hidden, keys),
      matrix(`blk.${n}.attn_output.weight`, queries, hidden),
      norm(`blk.${n}.ffn_norm.weight`),
      matrix(`blk.${n}.ffn_gate.weight`, hidden, feedForward),
      matrix(`blk.${n}.ffn_up.weight`, hidden, feedForward),
      matrix(`blk.${n}.ffn_down.weight`, feedForward, hidden),
    ]).flat(),
  ];
}

/** Contains the label, which is written before the vocabulary. */
const HEAD_BYTES = 64 * 1024;
/** GGUF's type number of a boolean. */
const BOOL = 7;

/** Whether a GGUF file is labelled as random, so that its text is noise. Rejects where it cannot be read. */
export async function isLabelledRandom(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    const { bytesRead } = await file.read(head, 0, HEAD_BYTES, 0);
    const at = head.subarray(0, bytesRead).indexOf(LABEL, 0, "latin1");
    const value = at + LABEL.length;
    // A key is followed by its value's type, four bytes, and the value.
    return at >= 0 && value + 5 <= bytesRead && head.readUInt32LE(value) === BOOL && head[value + 4] === 1;
  } finally {
    await file.close();
  }
}

/** A q8_0 block: a half-precision scale, then 32 signed bytes. */
const BLOCK = 34;
/** Two blocks are a whole number of 32-bit words. */
const PIECE = 2 * BLOCK * 8_192;
/** The deviation of evenly drawn signed bytes. */
const BYTE_DEVIATION = 73.9;
const HALF_EXPONENT_BIAS = 15;
const HALF_FRACTION_BITS = 10;

/**
 * Random q8_0 blocks of about the given standard deviation, the same for the same seed. Every piece reuses one buffer. The scale is a power
 * of two, so the deviation may be off by a factor of up to √2.
 */
export function* randomBlocks(bytes: number, deviation: number, seed: number): Generator<Uint8Array> {
  if (bytes % BLOCK !== 0) throw new RangeError(`${bytes} bytes are not a whole number of q8_0 blocks`);
  const exponent = Math.round(Math.log2(deviation / BYTE_DEVIATION));
  const scale = (exponent + HALF_EXPONENT_BIAS) << HALF_FRACTION_BITS;
  const words = new Uint32Array(PIECE / 4);
  const piece = new Uint8Array(words.buffer);
  let state = seed | 0 || 1;
  for (let left = bytes; left > 0; left -= PIECE) {
    for (let at = 0; at < words.length; at++) {
      // xorshift32: its time is negligible beside writing.
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      words[at] = state;
    }
    for (let at = 0; at < piece.length; at += BLOCK) {
      piece[at] = scale & 0xff;
      piece[at + 1] = scale >>> 8;
    }
    yield left < PIECE ? piece.subarray(0, left) : piece;
  }
}

/** A byte-pair vocabulary as in GGUF files: tokens in GPT-2's byte alphabet, and their merges by rank. */
export interface BytePairVocabulary {
  readonly tokens: readonly string[];
  readonly merges: readonly string[];
}

/**
 * GPT-2's vocabulary (`r50k_base`), or its first `size` tokens. Tokens are merged from earlier ones, so any prefix with the 256 bytes is a
 * valid vocabulary; a small one only splits text into more tokens.
 */
export async function gpt2Vocabulary(size = Number.POSITIVE_INFINITY): Promise<BytePairVocabulary> {
  // Imported here, as it is half a megabyte of source.
  const { default: ranks } = await import("gpt-tokenizer/bpeRanks/r50k_base");
  const tokens = ranks.slice(0, size).map((token) => bytesOf(token));
  const rankOf = new Map(tokens.map((token, rank) => [token, rank]));
  return {
    tokens: tokens.map(spelled),
    merges: tokens.flatMap((token, rank) => {
      if (token.length === 1) return [];
      const [left, right] = partsOf(token, rank, rankOf);
      return [`${spelled(left)} ${spelled(right)}`];
    }),
  };
}

/** A token's bytes, one character each. */
function bytesOf(token: string | readonly number[]): string {
  return Buffer.from(typeof token === "string" ? Buffer.from(token) : token).toString("latin1");
}

/** The two tokens that a token is merged from: its bytes after every earlier merge. */
function partsOf(token: string, rank: number, rankOf: ReadonlyMap<string, number>): readonly [string, string] {
  const parts = [...token];
  while (parts.length > 2) {
    let best = { at: -1, rank };
    for (let at = 0; at + 1 < parts.length; at++) {
      const merged = rankOf.get(`${parts[at]}${parts[at + 1]}`);
      if (merged !== undefined && merged < best.rank) best = { at, rank: merged };
    }
    if (best.at < 0) break;
    parts.splice(best.at, 2, `${parts[best.at]}${parts[best.at + 1]}`);
  }
  const [left, right] = parts;
  if (left === undefined || right === undefined || parts.length > 2) {
    throw new RangeError(`token ${rank} is not made of two earlier ones`);
  }
  return [left, right];
}

/** GPT-2's byte alphabet: printable bytes are themselves, the others are characters from U+0100 on, in order. */
const SPELLING = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const prints = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCharCode(prints ? byte : next++);
  });
})();

function spelled(bytes: string): string {
  return Array.from(bytes, (byte) => SPELLING[byte.charCodeAt(0)]).join("");
}
