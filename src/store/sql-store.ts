import type { Database } from "./database.js";
import { expire } from "./expiry.js";
import { forget } from "./forgetting.js";
import { promptsIn } from "./prompts.js";
import { requestsIn } from "./requests.js";
import { scopesIn } from "./scopes.js";
import type { Store } from "./store.js";
import { turnsIn } from "./turns.js";
import { usersIn } from "./users.js";
import { writesIn } from "./writes.js";

/** The store in a database. */
export function storeIn(database: Database): Store {
  return {
    ...scopesIn(database),
    ...turnsIn(database),
    ...requestsIn(database),
    ...usersIn(database),
    prompts: promptsIn(database),
    writes: writesIn(database),
    forget: (user, memoryId, of) => forget(database, user, memoryId, of),
    expire: (user, before) => expire(database, user, before),
    async ping() {
      await database.read("select 1 as one", []);
    },
    close: () => database.close(),
  };
}
