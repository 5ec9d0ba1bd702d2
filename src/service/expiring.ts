import {
  type BlockRegister,
  type Digest,
  digestOf,
  type Label,
  labelsIn,
  type ResidencyModel,
  renderSection,
  retained,
  type Scope,
  type Turn,
} from "../core/index.js";
import type { Store } from "../store/store.js";
import { dropServed } from "./evicting.js";
import type { WorkingScope } from "./working-scopes.js";

/**
 * Drops what nobody used in one scope since a time: whole conversations whose last turn is older, single prompts that are older, the
 * requests of those, and every block that nothing left names. Its memory is not forgotten: it may come back, with a new label. A scope
 * of which nothing is left goes altogether. Synchronous. Gives the number of turns that went.
 *
 * @param before milliseconds since the epoch
 */
export function expireIn(
  working: WorkingScope,
  store: Store,
  scope: Scope,
  before: number,
  residency: ResidencyModel,
): number {
  const { state, version } = working;
  if (version === null) return 0;
  const turns = store.findExpired(scope, before);
  const { expired, remaining } = turns;
  if (expired.length === 0) return 0;
  if (remaining.length === 0) {
    store.commitEnd(scope, version);
    return expired.length;
  }
  const kept = new Set<Digest>(remaining.flatMap((turn) => sectionsOf(turn, state.register)));
  const sections = [...new Set(expired.flatMap((turn) => sectionsOf(turn, state.register)))];
  dropServed(working, store, scope, turns.live, residency);
  // What an answer names, its turn injected or was asked for.
  const named = new Set<Label>();
  for (const { injection, requested } of remaining)
    for (const label of [...labelsIn(injection), ...requested]) named.add(label);
  state.forget(state.register.keepOnly(named));
  working.version = store.commitExpiry(scope, version, {
    changes: state.drain(),
    turns,
    sections: sections.filter((section) => !kept.has(section)),
  });
  return expired.length;
}

function sectionsOf({ injection, retention }: Turn, register: BlockRegister): Digest[] {
  return [injection, retained(injection, retention)]
    .map((standing) => renderSection(standing, register.textOf))
    .filter((section) => section !== "")
    .map(digestOf);
}
