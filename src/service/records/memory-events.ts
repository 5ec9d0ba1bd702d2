import {
  cutText,
  digestOf,
  type Label,
  MAX_MEMORY_CHARACTERS,
  type MemoryEnd,
  type MemoryId,
  renderSection,
  retained,
  type Turn,
} from "../../core/index.js";
import { type FoundQuotes, StaleScopeError, type Store } from "../../store/api/store.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scope.js";

/** What happened to a memory, by its owner. */
export type MemoryEvent =
  | { readonly kind: "deleted"; readonly memoryId: MemoryId }
  | {
      readonly kind: "updated";
      readonly memoryId: MemoryId;
      readonly text: string;
      readonly end?: MemoryEnd | undefined;
    };

/**
 * Gives a memory that a scope knows a new text: later prompts use it, and the old one is not carried over. False where the scope does not
 * know the memory, or has this text already.
 */
export async function updateIn(
  working: WorkingScope,
  store: Store,
  { memoryId, text, end }: Extract<MemoryEvent, { readonly kind: "updated" }>,
): Promise<boolean> {
  // Without a change there is no commit to find out.
  await working.check();
  const { scope, state } = working;
  if (state.register.textsOf(memoryId).size === 0) return false;
  const until = end?.until ?? state.register.untilOf(memoryId);
  const ends = until === undefined ? {} : { end: { until } };
  state.register.resolve([{ id: memoryId, text: cutText(text, MAX_MEMORY_CHARACTERS), ...ends }]);
  const delta = deltaOf(state);
  if (delta.changes.register.versions.length === 0) return false;
  await working.commit((base) => store.commitChanges(scope, base, delta));
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
export async function forgetIn(
  working: WorkingScope,
  store: Store,
  memoryId: MemoryId,
  quotes: FoundQuotes,
  isInSource: boolean,
  at: number,
): Promise<ReadonlySet<Label>> {
  const { scope, state } = working;
  const { register } = state;
  const gone = register.forget(memoryId);
  state.forget(gone);
  const sectionsOf = ({ injection, retention }: Pick<Turn, "injection" | "retention">) => {
    if (injection.blocks.some(({ label }) => register.get(label) === undefined))
      throw new StaleScopeError("another process composed since");
    return [injection, retained(injection, retention)]
      .map((standing) => renderSection(standing, register.textOf))
      .filter((section) => section !== "")
      .map(digestOf);
  };
  const record = { delta: deltaOf(state), memoryId, gone, quotes, sectionsOf, isInSource, at };
  await working.commit((base) => store.commitForgetting(scope, base, record));
  return gone;
}
