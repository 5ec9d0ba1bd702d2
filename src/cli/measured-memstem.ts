import { randomUUID } from "node:crypto";
import { DEFAULT_POLICY, DEFAULT_RETENTION, type EngineModel, type RequestId } from "../core/index.js";
import { ENGINES } from "../engines/adapters/engines.js";
import { Memstem } from "../service/library/memstem.js";
import { openDatabase } from "../store/database/open-database.js";
import { JournalStore } from "../store/journal/journal-store.js";
import { journalIn } from "../store/sqlite/sqlite-journal.js";
import { countO200k } from "./o200k.js";

/** A service that knows nobody, on a database in memory, without a memory source. */
export function openMeasuredMemstem(cost: EngineModel, now: () => number): Memstem {
  return new Memstem({
    store: new JournalStore(journalIn(openDatabase(":memory:"))),
    source: null,
    defaults: { policy: DEFAULT_POLICY, retention: DEFAULT_RETENTION, engine: cost, engineFamily: "generic" },
    engines: ENGINES,
    countTokens: countO200k,
    newRequestId: () => randomUUID() as RequestId,
    now,
  });
}
