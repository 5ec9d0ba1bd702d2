import { EMPTY_SCOPE, type Scope, ScopeFolding, type StoredScope } from "../../core/index.js";
import type { LoadedScope } from "../api/store.js";
import type { JournalScope } from "./journal-database.js";
import { decodedOf, type JournalParts } from "./journal-parts.js";
import { JournalVersion } from "./journal-version.js";

/** See `Store.loadScope`. */
export async function loadScope(parts: JournalParts, scope: Scope): Promise<LoadedScope> {
  const stored = await parts.database.load(scope);
  const { version, deletions } = stored;
  if (version === null) return { scope: withForgotten(EMPTY_SCOPE, stored), version, deletions };
  const state = withForgotten(stateOf(parts, version.scopeId, stored), stored);
  const { snapshot, behind } = stored;
  const book = {
    behind: {
      records: behind.length,
      length: behind.reduce((length, { changes }) => length + (changes?.length ?? 0), 0),
      snapshotLength: snapshot?.data.length ?? 0,
    },
  };
  return { scope: state, version: new JournalVersion(version, book), deletions };
}

/** A scope's state: its snapshot, and the changes behind it. Forgotten memories are not in it. */
export function stateOf(
  { states }: Pick<JournalParts, "states">,
  scopeId: number,
  { snapshot, behind }: JournalScope,
): StoredScope {
  const before =
    snapshot === null ? EMPTY_SCOPE : decodedOf({ scopeId, n: snapshot.n }, () => states.decodeState(snapshot.data));
  if (behind.length === 0) return before;
  const folding = new ScopeFolding(before);
  for (const { n, changes } of behind)
    if (changes !== null) folding.take(decodedOf({ scopeId, n }, () => states.decodeChanges(changes)));
  return folding.stored();
}

/** A memory is forgotten with every agent, so that is not each scope's own to say. */
function withForgotten(state: StoredScope, { forgotten }: JournalScope): StoredScope {
  return { ...state, register: { ...state.register, forgotten } };
}
