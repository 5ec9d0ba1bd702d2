import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import type { MemorySource } from "../../src/memory/memory-source.js";
import type { Memprefix } from "../../src/service/library/memprefix.js";
import { openPostgres } from "../../src/store/postgres/open.js";
import { SqlStore } from "../../src/store/sql-store.js";
import { openOwned } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { newDatabase, testServer } from "../postgres/test-server.js";
import { openService } from "./compose/service-fixture.js";

const server = await testServer();

/** The databases that several services may share; one without a server is skipped. */
export const SHARED = [
  { name: "a file", skip: false },
  { name: "PostgreSQL", skip: server.url === null },
] as const;

/** A database that several services share, each with a store of its own as a process has; a fresh one for every test. */
export interface SharedDatabase {
  /** Where it is a file: its directory. */
  readonly directory: string;
  /** Where it is a server's. */
  readonly url: string;
  /** @param wrap what stands between the service and its store */
  start(wrap?: (store: Store) => Store, source?: MemorySource | null): Promise<Memprefix>;
  /** Closes all services. */
  close(): Promise<void>;
}

export function sharedDatabase(name: (typeof SHARED)[number]["name"]): SharedDatabase {
  const services: Memprefix[] = [];
  let directory = "";
  let url = "";
  const close = async () => {
    await Promise.all(services.splice(0).map((service) => service.close()));
  };
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "memprefix-shared-"));
    if (name === "PostgreSQL" && server.url !== null) url = await newDatabase(server.url);
  });
  afterEach(async () => {
    await close();
    await rm(directory, { recursive: true });
  });
  return {
    get directory() {
      return directory;
    },
    get url() {
      return url;
    },
    async start(wrap = (store) => store, source = null) {
      const database = name === "a file" ? openOwned(directory).database : await openPostgres(url);
      const service = openService({ store: wrap(new SqlStore(database)), source });
      services.push(service);
      return service;
    },
    close,
  };
}

/** A store, around calls of which something else happens. */
export function around(store: Store, wrap: (method: string, call: () => Promise<unknown>) => Promise<unknown>): Store {
  return new Proxy(store, {
    get(target, method) {
      const value = Reflect.get(target, method) as unknown;
      if (typeof value !== "function") return value;
      return (...args: readonly unknown[]) =>
        wrap(String(method), async () => Reflect.apply(value, target, args) as unknown);
    },
  });
}

/** A store that does something else right before the first call of one method. */
export function doingBefore(store: Store, method: keyof Store, something: () => Promise<void>): Store {
  let isDone = false;
  return around(store, async (name, call) => {
    if (name === method && !isDone) {
      isDone = true;
      await something();
    }
    return call();
  });
}
