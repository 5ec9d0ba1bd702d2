import { cutText, type MemoryId, type Scope } from "../../core/index.js";
import type { Store } from "../../store/api/store.js";
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
