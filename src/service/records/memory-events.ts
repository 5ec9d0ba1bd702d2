import { cutText, digestOf, type Label, type MemoryId, renderSection, retained, type Scope } from "../../core/index.js";
import type { FoundQuotes, Store } from "../../store/api/store.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/** What a memory's owner says happened to it. */
export type MemoryEvent =
  | { readonly kind: "deleted"; readonly memoryId: MemoryId }
  | { readonly kind: "updated"; readonly memoryId: MemoryId; readonly text: string };

/**
 * A memory that a scope knows has another text now: what is composed from here on is composed with that one, and the old one is not
 * carried over any more. False where the scope does not know the memory, or has this text for it already.
 */
export function updateIn(
  working: WorkingScope,
  store: Store,
  scope: Scope,
  { memoryId, text }: Extract<MemoryEvent, { readonly kind: "updated" }>,
  maxCharacters: number,
): boolean {
  const { register } = working.state;
  const known = register.textsOf(memoryId);
  if (working.version === null || known.size === 0) return false;
  register.resolve([{ id: memoryId, text: cutText(text, maxCharacters) }]);
  const changes = working.state.drain();
  if (changes.register.versions.length === 0) return false;
  working.version = store.commitChanges(scope, working.version, changes);
  return true;
}

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
