import { cutText, digestOf, type Label, type MemoryId, renderSection, retained, type Scope } from "../../core/index.js";
import type { FoundQuotes, Store } from "../../store/api/store.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

/** What happened to a memory, by its owner. */
export type MemoryEvent =
  | { readonly kind: "deleted"; readonly memoryId: MemoryId }
  | { readonly kind: "updated"; readonly memoryId: MemoryId; readonly text: string };

/**
 * Gives a memory that a scope knows a new text: later prompts use it, and the old one is not carried over. False where the scope does not
 * know the memory, or has this text already.
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
 * Forgets a memory in one scope: its text is erased from blocks, replayed turns and the application's messages, and its id is never sent
 * again. Gives the labels whose text was erased.
 *
 * @param quotes the memory's present and former texts, with any agent, and where they are quoted
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
