import type { ConversationId, Scope } from "../../core/index.js";
import type { StoredVersion } from "../api/store.js";
import type { JournalRecord } from "./journal-database.js";
import type { TurnReading } from "./turn-reading.js";
import { VersionedScopes } from "./versioned-scopes.js";

/** Conversations that are kept … */
const MOST_LOADED = 32;
/** … and the characters of one's records. */
const MOST_CHARACTERS = 300_000;

interface Loaded {
  readonly version: StoredVersion;
  readonly id: ConversationId;
  readonly reading: TurnReading;
}

/**
 * The records of conversations that were read with their scopes, until the request that they were read for has committed: it may ask for
 * what was said in them.
 */
export class LoadedConversations {
  readonly #scopes = new VersionedScopes<Loaded>({ scopes: MOST_LOADED });

  /** A scope was loaded with a conversation's records. */
  loaded(scope: Scope, of: Loaded, records: readonly Pick<JournalRecord, "said">[]): void {
    if (records.reduce((sum, { said }) => sum + (said?.length ?? 0), 0) > MOST_CHARACTERS) this.ended(scope);
    else this.#scopes.set(scope, of.version, of);
  }

  /** Null: not at hand. */
  at(scope: Scope, version: StoredVersion, id: ConversationId): TurnReading | null {
    const loaded = this.#scopes.at(scope, version);
    return loaded?.id === id ? loaded.reading : null;
  }

  /** Something of a scope was committed. */
  ended(scope: Scope): void {
    this.#scopes.delete(scope);
  }
}
