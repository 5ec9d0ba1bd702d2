import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import type { RetrievedMemory } from "../core/blocks/context-block.js";
import { append } from "../core/text/collections.js";
import { type EmbeddedStore, Erasure, openEmbeddedStore, STORE_DATABASES } from "./embedded-store.js";
import { embeddedFilters, embeddedScope, embeddedUserName, isOwnedBy, searchOptions } from "./mem0-identity.js";
import { loadOnce, SerialQueue } from "./mem0-packages.js";
import { readMem0Added, readMem0Kept, searchMem0 } from "./mem0-results.js";
import { checkMemoryText } from "./mem0-service.js";
import { type MemorySource, MemorySourceError, within } from "./memory-source.js";

export interface EmbeddedMem0Options {
  /** Created if missing. The memories are in its subdirectory `mem0`. */
  readonly dataDir: string;
  /** Least cosine similarity to the query, 0 to 1. Default: Mem0's, 0.1. */
  readonly threshold?: number;
}

const NAME = "embedded";

const DELETE_ALL_ATTEMPTS = 3;

const MOST_LISTED = 1_000_000_000;

/**
 * Mem0 OSS inside this process, on files: the default source, with real embeddings, no keys and no network. memprefix owns its content.
 *
 * Without an agent, a call sees only the memories without one (Mem0 OSS would search all agents'): what one agent learned must not appear in a
 * prompt that never named it. Only deletions without an agent, `deleteUser` and `list` reach all agents.
 *
 * `load` or the first call loads Mem0 and its model; after a failure the next call tries again. Writes run one at a time, beside searches. An
 * aborted call rejects at once, but a running write completes. A search reads all users' memories, in linear time: meant for about ten
 * thousand. A deletion resolves when the text is out of the files as well (see {@link Erasure}). Throws what `mkdir` throws.
 */
export function openEmbeddedMem0(options: EmbeddedMem0Options): MemorySource {
  const directory = resolve(options.dataDir, "mem0");
  mkdirSync(directory, { recursive: true });

  const erasure = new Erasure(directory, STORE_DATABASES);
  const writes = new SerialQueue();
  let opened: EmbeddedStore | undefined;
  let closed = false;

  const open = loadOnce(async () => {
    const store = await openEmbeddedStore(directory);
    if (closed) {
      store.close();
      throw unreachable("it is closed");
    }
    opened = store;
    erasure.resume();
    return store.memory;
  });

  /** Every call opens the store first, rejects when the signal aborts, and fails with `MemorySourceError` only. */
  function call<T>(signal: AbortSignal, work: (mem0: EmbeddedStore["memory"]) => Promise<T>): Promise<T> {
    if (closed) return Promise.reject(unreachable("it is closed"));
    return within(NAME, null, signal, async () => {
      try {
        return await work(await open());
      } catch (error) {
        throw error instanceof MemorySourceError ? error : unreachable(reasonOf(error));
      }
    });
  }

  let nextErasure: Promise<boolean> | undefined;
  function erased(): Promise<boolean> {
    nextErasure ??= writes.run(() => {
      nextErasure = undefined;
      return erasure.finish();
    });
    return nextErasure;
  }

  return {
    name: NAME,
    owned: true,

    async load() {
      await call(new AbortController().signal, async () => {});
    },

    async search({ scope, query, topK, options: asked }, signal) {
      if (query.trim() === "") return [];
      const search = { ...embeddedScope(scope), ...asked };
      const limits = options.threshold === undefined ? {} : { threshold: options.threshold };
      const searching = { filters: embeddedFilters(search), ...limits, ...searchOptions(search) };
      const ask = (most: number) => call(signal, (mem0) => mem0.search(query, { ...searching, topK: most }));
      return await searchMem0(NAME, search, topK, ask);
    },

    async add(scope, memories, signal) {
      for (const { text } of memories) checkMemoryText(NAME, text);
      const { userId, agentId } = embeddedScope(scope);
      return await call(signal, async (mem0) => {
        const added: RetrievedMemory[] = [];
        for (const { text, metadata } of memories) {
          if (signal.aborted) break;
          const keeping = { userId, agentId, infer: false, metadata: { ...metadata } };
          append(added, readMem0Added(await writes.run(() => mem0.add(text, keeping)), text));
        }
        return added;
      });
    },

    async delete(scope, id, signal) {
      // A scope without an agent reaches all of the user's memories, so that forgetting one finds it.
      const names = { ...embeddedScope(scope), ...(scope.agentId === null ? { agentId: null } : {}) };
      return await call(signal, async (mem0) => {
        const deleted = await writes.run(async () => {
          if (!isOwnedBy(await mem0.get(id), names)) return false;
          erasure.begin();
          try {
            await mem0.delete(id);
          } catch (error) {
            // Another process on these files may have been faster.
            if (isOwnedBy(await mem0.get(id), names)) throw error;
          }
          return true;
        });
        if (deleted) await erased();
        return deleted;
      });
    },

    async deleteUser(scope, signal) {
      const userId = embeddedUserName(scope);
      await call(signal, async (mem0) => {
        await writes.run(async () => {
          erasure.begin();
          for (let attempt = 1; ; attempt++) {
            try {
              await mem0.deleteAll({ userId });
              return;
            } catch (error) {
              // It gives up at a memory that another process deleted meanwhile.
              if (attempt === DELETE_ALL_ATTEMPTS) throw error;
            }
          }
        });
        await erased();
      });
    },

    async list(scope, signal) {
      const filters = { user_id: embeddedUserName(scope) };
      const listing = { filters, topK: MOST_LISTED, showExpired: true };
      return readMem0Kept(NAME, await call(signal, (mem0) => mem0.getAll(listing)), embeddedUserName(scope));
    },

    async close() {
      if (closed) return;
      closed = true;
      await writes.idle();
      opened?.close();
    },
  };
}

/** Mem0's or SQLite's own message, which never quotes a memory. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return "Mem0 failed";
  const code = "code" in error && typeof error.code === "string" ? `${error.code}: ` : "";
  return `${code}${error.message}`.slice(0, 200);
}

function unreachable(cause: string): MemorySourceError {
  return new MemorySourceError(NAME, { kind: "unreachable", cause });
}
