import { digestOf, type Label, type MemoryId, renderSection, retained, type Scope } from "../../core/index.js";
import type { FoundQuotes, Store } from "../../store/api/store.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/**
 * Forgets a memory in one scope: its text is gone from the blocks, from every turn that is replayed and from what the application said,
 * and its id is never sent again. Gives back the labels whose text is gone.
 *
 * @param quotes what the memory says, or said, with any agent, and where it is quoted
 * @param isInSource whether the memory source has to delete it, too
 * @param at milliseconds since the epoch
 */
export function forgetIn(
  working: WorkingScope,
  store: Store,
  scope: Scope,
  memoryId: MemoryId,
  quotes: FoundQuotes,
  isInSource: boolean,
  at: number,
): ReadonlySet<Label> {
  const { state } = working;
  const gone = state.register.forget(memoryId);
  state.forget(gone);
  working.version = store.commitForgetting(scope, working.version, {
    changes: state.drain(),
    memoryId,
    gone,
    quotes,
    sectionsOf: ({ injection, retention }) =>
      [injection, retained(injection, retention)]
        .map((standing) => renderSection(standing, state.register.textOf))
        .filter((section) => section !== "")
        .map(digestOf),
    isInSource,
    at,
  });
  return gone;
}
