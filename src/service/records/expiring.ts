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
  type TurnId,
} from "../../core/index.js";
import type { MessageId, NamingTurn, Store } from "../../store/api/store.js";
import { dropServed } from "../learning/evicting.js";
import type { WorkingScope } from "../scopes/working-scopes.js";
import { NameUses } from "./name-uses.js";

/** Turns that are looked at in one go: some milliseconds. */
const SCANNED_AT_ONCE = 200;

/** What a turn keeps from being dropped. */
interface Named {
  /** What an answer names, its turn injected or was asked for. */
  readonly labels: readonly Label[];
  readonly sections: readonly Digest[];
  readonly heads: readonly Digest[];
  readonly messages: readonly MessageId[];
}

/**
 * What nobody used in one scope since a time, on its way out, piece by piece: whole conversations whose last turn is older, single prompts
 * that are older, the requests of those, and every block that nothing left names. A block's memory is not forgotten: it may come back,
 * with a new label. A scope of which nothing is left goes altogether.
 *
 * After each piece the scope is sound, and as it would be if only that had ever been asked to go. Conversations go from their end, so that
 * one that is gone on with meanwhile is a shorter one. What is named is counted once, before the first piece; what is composed after that
 * is looked at with each piece.
 */
export class Expiring {
  readonly #labels = new NameUses<Label>();
  readonly #sections = new NameUses<Digest>();
  readonly #heads = new NameUses<Digest>();
  readonly #messages = new NameUses<MessageId>();
  readonly #expired: TurnId[] = [];
  #upTo: TurnId | 0 = 0;

  /** @param before milliseconds since the epoch */
  constructor(
    private readonly store: Store,
    private readonly scope: Scope,
    private readonly before: number,
    private readonly residency: ResidencyModel,
  ) {}

  /** Looks at some more of the scope's turns. Gives whether there are others. */
  look({ state: { register } }: WorkingScope): boolean {
    const { expired, remaining, next } = this.store.scanTurns(this.scope, this.before, this.#upTo, SCANNED_AT_ONCE);
    for (const turn of remaining) this.#keep(namedBy(turn, register));
    for (const turn of expired) {
      const { labels, sections, heads, messages } = namedBy(turn, register);
      this.#labels.count(labels);
      this.#sections.count(sections);
      this.#heads.count(heads);
      this.#messages.count(messages);
      this.#expired.push(turn.id);
    }
    this.#upTo = Math.max(this.#upTo, expired.at(-1)?.id ?? 0, remaining.at(-1)?.id ?? 0) as TurnId | 0;
    return next !== null;
  }

  /** Turns that are to go, of those that were looked at. */
  get left(): number {
    return this.#expired.length;
  }

  /**
   * The next piece, of at most so many turns. Gives back what takes note that it is stored, and then the number of turns that went.
   * Synchronous, and may be called again where it could not be stored.
   */
  expireIn(working: WorkingScope, most: number): () => number {
    const { state, version } = working;
    const { store, scope, before } = this;
    const ids = this.#expired.slice(-most);
    const settle = (gone: readonly Named[]) => () => {
      this.#expired.length -= ids.length;
      this.#labels.drop(gone.flatMap(({ labels }) => labels));
      this.#sections.drop(gone.flatMap(({ sections }) => sections));
      this.#heads.drop(gone.flatMap(({ heads }) => heads));
      this.#messages.drop(gone.flatMap(({ messages }) => messages));
      return gone.length;
    };
    if (version === null) return settle([]);
    const turns = store.findExpired(scope, before, ids);
    const gone = turns.expired.map((turn) => namedBy(turn, state.register));
    if (gone.length === 0) return settle([]);
    if (ids.length === this.#expired.length && store.counts(scope).turns === gone.length) {
      store.commitEnd(scope, version);
      return settle(gone);
    }
    this.#keepNew(state.register);
    dropServed(working, store, scope, turns.live, this.residency);
    state.forget(state.register.keepOnly(this.#labels.without(gone.flatMap(({ labels }) => labels))));
    working.version = store.commitExpiry(scope, version, {
      changes: state.drain(),
      turns,
      sections: this.#sections.freedBy(gone.flatMap(({ sections }) => sections)),
      heads: this.#heads.freedBy(gone.flatMap(({ heads }) => heads)),
      messages: this.#messages.freedBy(gone.flatMap(({ messages }) => messages)),
    });
    return settle(gone);
  }

  /** What was composed since it was looked: few. */
  #keepNew(register: BlockRegister): void {
    const { expired, remaining } = this.store.scanTurns(this.scope, this.before, this.#upTo, Number.MAX_SAFE_INTEGER);
    for (const turn of [...expired, ...remaining]) this.#keep(namedBy(turn, register));
  }

  #keep({ labels, sections, heads, messages }: Named): void {
    this.#labels.keep(labels);
    this.#sections.keep(sections);
    this.#heads.keep(heads);
    this.#messages.keep(messages);
  }
}

function namedBy({ injection, retention, requested, head, messages }: NamingTurn, register: BlockRegister): Named {
  const sections = [injection, retained(injection, retention)]
    .map((standing) => renderSection(standing, register.textOf))
    .filter((section) => section !== "")
    .map(digestOf);
  return {
    labels: [...new Set([...labelsIn(injection), ...requested])],
    sections: [...new Set(sections)],
    heads: [head],
    messages: [...new Set(messages)],
  };
}
