import { mkdirSync } from "node:fs";
import {
  type CachingEngine,
  DEFAULT_ENGINE_MODEL,
  DEFAULT_POLICY,
  DEFAULT_RETENTION,
  ENGINE_MODELS,
  type EngineModel,
  type MemoryId,
  type RequestId,
  type ResidencyModel,
  type RetrievedMemory,
  type ScopeBounds,
  type TokenCounter,
  type UserId,
} from "../../../src/core/index.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import type { MemorySource } from "../../../src/memory/memory-source.js";
import type { PlanBatch } from "../../../src/service/base/memprefix-parts.js";
import { readComposeOptions } from "../../../src/service/compose/compose-request.js";
import type { ComposeOptions } from "../../../src/service/fields/call-options.js";
import { Memprefix } from "../../../src/service/library/memprefix.js";
import { storeIn } from "../../../src/store/sql-store.js";
import { openInMemory, openOwned } from "../../../src/store/sqlite/open.js";
import type { Store } from "../../../src/store/store.js";

/** What a test may choose of a service. */
export interface ServiceOptions {
  /** The data directory; default: a database in memory. */
  readonly directory?: string;
  /** In place of a plain one on that. */
  readonly store?: Store;
  readonly source?: MemorySource | null;
  readonly maxWorkingBytes?: number;
  readonly maxWaitingPerUser?: number;
  readonly scopeBounds?: ScopeBounds;
  readonly residency?: ResidencyModel;
  /** The cache that all users share. */
  readonly cachingEngine?: CachingEngine;
  /** How batches are planned. */
  readonly planning?: PlanBatch;
  /** Names of workers, where requests name none. */
  readonly workers?: readonly string[];
  /** Default: the real ones. */
  readonly engines?: typeof ENGINES;
  /** What prompts cost. */
  readonly engine?: EngineModel;
  /** Default: a token for every four characters. */
  readonly countTokens?: TokenCounter;
  /** Milliseconds since the epoch; default: time stands still. */
  readonly now?: () => number;
}

/** When time stands still. */
export const NOON = 1_700_000_000_000;

function openDirectory(directory: string) {
  mkdirSync(directory, { recursive: true });
  return openOwned(directory).database;
}

/** A service on real SQLite with request ids that count up. */
export function openService({
  directory,
  store = storeIn(directory === undefined ? openInMemory() : openDirectory(directory)),
  source = null,
  engine = ENGINE_MODELS[DEFAULT_ENGINE_MODEL],
  workers,
  ...bounds
}: ServiceOptions = {}): Memprefix {
  let requests = 0;
  return new Memprefix({
    store,
    source,
    defaults: { policy: DEFAULT_POLICY, retention: DEFAULT_RETENTION, engine, engineFamily: "generic", workers },
    engines: ENGINES,
    countTokens: (text) => Math.ceil(text.length / 4),
    newRequestId: () => `generated-${++requests}` as RequestId,
    now: () => NOON,
    ...bounds,
  });
}

export const ana = "ana" as UserId;

/** Composes through the library's reader, as callers do. */
export function composeWith(service: Memprefix, options: ComposeOptions) {
  return service.compose(readComposeOptions(options));
}

export function memories(texts: Readonly<Record<string, string>>) {
  return Object.entries(texts).map(([id, memory]) => ({ id, memory }));
}

export function found(texts: Readonly<Record<string, string>>): RetrievedMemory[] {
  return Object.entries(texts).map(([id, text]) => ({ id: id as MemoryId, text }));
}

/** A source whose searches do what the test says; it keeps nothing. */
export function searchingSource(search: MemorySource["search"], owned = false): MemorySource {
  return {
    name: "test",
    owned,
    search,
    add: async () => [],
    delete: async () => true,
    deleteUser: async () => {},
    close: async () => {},
  };
}
