import { afterEach, beforeEach } from "vitest";
import type { MemorySource } from "../../src/memory/memory-source.js";
import type { Memprefix } from "../../src/service/library/memprefix.js";
import { openPostgres } from "../../src/store/postgres/open.js";
import { storeIn } from "../../src/store/sql-store.js";
import { openOwned } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { newDatabase, testServer } from "../postgres/test-server.js";
import { temporaryFolders } from "../temporary-folders.js";
import { openService } from "./compose/service-fixture.js";

const server = await testServer();

/** The databases that several services may share; one without a server is skipped. */
export const SHARED = [
  { name: "a file", skip: false },
  { name: "PostgreSQL", skip: server.url === null },
] as const;

/** A database that several services share, each with a store of its own as a process has; a fresh one for every test. */
export interface SharedDatabase {
  /** @param wrap what stands between the service and its store */
  start(wrap?: (store: Store) => Store, source?: MemorySource | null): Promise<Memprefix>;
}

export function sharedDatabase(name: (typeof SHARED)[number]["name"]): SharedDatabase {
  const services: Memprefix[] = [];
  const newFolder = temporaryFolders();
  let directory = "";
  let url = "";
  beforeEach(async () => {
    directory = newFolder();
    if (name === "PostgreSQL" && server.url !== null) url = await newDatabase(server.url);
  });
  afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));
  return {
    async start(wrap = (store) => store, source = null) {
      const database = name === "a file" ? openOwned(directory).database : await openPostgres(url);
      const service = openService({ store: wrap(storeIn(database)), source });
      services.push(service);
      return service;
    },
  };
}

/** A store that waits before it stores a prompt, and stores none where that rejects. */
export function beforeComposes(store: Store, wait: () => Promise<unknown>): Store {
  const hold: Store["hold"] = store.hold.bind(store);
  store.hold = (scope, known, work) =>
    hold(scope, known, (held) => {
      const commit = held.commitCompose.bind(held);
      held.commitCompose = async (record) => {
        await wait();
        return commit(record);
      };
      return work(held);
    });
  return store;
}
