import {
  type BlockRegister,
  type Digest,
  type Label,
  labelsIn,
  type ResidencyModel,
  type Scope,
  type TurnId,
} from "../../core/index.js";
import {
  isSameVersion,
  type MessageId,
  type NamingTurn,
  StaleScopeError,
  type Store,
  type StoredVersion,
} from "../../store/api/store.js";
import { dropServed } from "../learning/engine-reports.js";
import { deltaOf, type WorkingScope } from "../scopes/working-scopes.js";

/** Turns per scan step: some milliseconds. */
const SCANNED_AT_ONCE = 200;

/** What a turn refers to. */
interface Named {
  /** Labels that the turn injected or that its request asked for. */
  readonly labels: readonly Label[];
  readonly heads: readonly Digest[];
  readonly messages: readonly MessageId[];
}

/**
 * Expires what was not used in one scope since a time, in several transactions: conversations whose last turn is older, single prompts that
 * are older, their requests, and every block that nothing left refers to. A block's memory is not forgotten: it may come back, with a new
 * label. A scope of which nothing is left is deleted.
 *
 * Each transaction leaves a consistent scope. Conversations lose their latest turns first, so a conversation that is continued meanwhile
 * resumes from what remains. References are counted once, before the first transaction; what is composed after that is read with each. Where
 * another process removes counted turns meanwhile, its counts are wrong: it stops, and another `ScopeExpiry` takes the rest.
 */
export class ScopeExpiry {
  readonly #labels = new ReferenceCounts<Label>();
  readonly #heads = new ReferenceCounts<Digest>();
  readonly #messages = new ReferenceCounts<MessageId>();
  readonly #expired: TurnId[] = [];
  #upTo: TurnId | 0 = 0;
  /** Scanned turns that are stored, unless another process removed some. */
  #stored = 0;
  /** The scope as the last transaction left it, in which {@link #stored} is right; null: none yet. */
  #version: StoredVersion | null = null;
  #isOutdated = false;

  /** @param before milliseconds since the epoch */
  constructor(
    private readonly store: Store,
    private readonly scope: Scope,
    private readonly before: number,
    private readonly residency: ResidencyModel,
  ) {}

  /** Scans the next {@link SCANNED_AT_ONCE} turns. Gives whether there are more. */
  async scan({ state: { register } }: WorkingScope): Promise<boolean> {
    const { expired, remaining, next } = await this.store.scanTurns(
      this.scope,
      this.before,
      this.#upTo,
      SCANNED_AT_ONCE,
    );
    const pinned = remaining.map((turn) => namedBy(turn, register));
    const counted = expired.map((turn) => namedBy(turn, register));
    for (const named of pinned) this.#pin(named);
    for (const { labels, heads, messages } of counted) {
      this.#labels.add(labels);
      this.#heads.add(heads);
      this.#messages.add(messages);
    }
    for (const { id } of expired) this.#expired.push(id);
    this.#stored += expired.length + remaining.length;
    this.#upTo = Math.max(this.#upTo, expired.at(-1)?.id ?? 0, remaining.at(-1)?.id ?? 0) as TurnId | 0;
    return next !== null;
  }

  /** Scanned turns that have yet to expire. */
  get left(): number {
    return this.#expired.length;
  }

  /** Whether it stopped early, as another process removed turns that were counted here. */
  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  /**
   * Expires the next turns, `most` at most. Returns a function that records the success once it is stored, and gives the number of expired
   * turns. May be called again where it could not be stored.
   */
  async expireIn(working: WorkingScope, most: number): Promise<() => number> {
    // Not everything below ends in a commit.
    await working.check();
    const { state } = working;
    const { store, scope, before } = this;
    const ids = this.#expired.slice(-most);
    const settle = (gone: readonly Named[]) => () => {
      this.#expired.length -= ids.length;
      this.#stored -= gone.length;
      this.#labels.release(gone.flatMap(({ labels }) => labels));
      this.#heads.release(gone.flatMap(({ heads }) => heads));
      this.#messages.release(gone.flatMap(({ messages }) => messages));
      return gone.length;
    };
    if (working.base.version === null) return settle([]);
    const turns = await store.findExpired(scope, before, ids);
    const gone = turns.expired.map((turn) => namedBy(turn, state.register));
    if (gone.length === 0) return settle([]);
    if (ids.length === this.#expired.length && (await store.counts(scope)).turns === gone.length) {
      await store.commitEnd(scope, working.base);
      return settle(gone);
    }
    const added = await this.#pinNew(state.register);
    const isOwn = isSameVersion(working.base.version, this.#version);
    if (!isOwn && (await store.counts(scope)).turns !== this.#stored + added)
      return () => {
        this.#expired.length = 0;
        this.#isOutdated = true;
        return 0;
      };
    await dropServed(working, store, turns.live, this.residency);
    state.forget(state.register.keepOnly(this.#labels.without(gone.flatMap(({ labels }) => labels))));
    const record = {
      delta: deltaOf(state),
      turns,
      heads: this.#heads.freedBy(gone.flatMap(({ heads }) => heads)),
      messages: this.#messages.freedBy(gone.flatMap(({ messages }) => messages)),
    };
    await working.commit((base) => store.commitExpiry(scope, base, record));
    this.#version = working.base.version;
    return settle(gone);
  }

  /** Pins what turns refer to that were composed since the scan, and gives how many there are: few. */
  async #pinNew(register: BlockRegister): Promise<number> {
    const { scope, before } = this;
    const { expired, remaining } = await this.store.scanTurns(scope, before, this.#upTo, Number.MAX_SAFE_INTEGER);
    for (const turn of [...expired, ...remaining]) this.#pin(namedBy(turn, register));
    return expired.length + remaining.length;
  }

  #pin({ labels, heads, messages }: Named): void {
    this.#labels.pin(labels);
    this.#heads.pin(heads);
    this.#messages.pin(messages);
  }
}

/** Throws `StaleScopeError` where another process composed the turn since the register was loaded. */
function namedBy({ injection, requested, head, messages }: NamingTurn, register: BlockRegister): Named {
  if (injection.blocks.some(({ label }) => register.get(label) === undefined))
    throw new StaleScopeError("another process composed since");
  return {
    labels: [...new Set([...labelsIn(injection), ...requested])],
    heads: [head],
    messages: [...new Set(messages)],
  };
}

/** Reference counts of names: how many turns that are to expire use each, and which are pinned by anything else. */
class ReferenceCounts<T> {
  readonly #pinned = new Set<T>();
  readonly #counts = new Map<T, number>();

  /** Something that stays uses these. */
  pin(names: Iterable<T>): void {
    for (const name of names) this.#pinned.add(name);
  }

  /** One that is to expire uses these: one reference each. */
  add(names: Iterable<T>): void {
    for (const name of names) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  /** The names of which nothing is left without these references; a name may be given several times. One that was never counted is not freed. */
  freedBy(gone: readonly T[]): T[] {
    const released = new ReferenceCounts<T>();
    released.add(gone);
    return [...released.#counts].flatMap(([name, count]) => {
      return !this.#pinned.has(name) && this.#counts.get(name) === count ? name : [];
    });
  }

  /** All names in use, less those that {@link freedBy} gives. */
  without(gone: readonly T[]): ReadonlySet<T> {
    const names = new Set([...this.#pinned, ...this.#counts.keys()]);
    for (const name of this.freedBy(gone)) names.delete(name);
    return names;
  }

  /** Removes these references. */
  release(gone: readonly T[]): void {
    for (const name of gone) {
      const left = (this.#counts.get(name) ?? 0) - 1;
      if (left > 0) this.#counts.set(name, left);
      else this.#counts.delete(name);
    }
  }
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** What is swept: expires what was not used since `before` (milliseconds since the epoch). */
export interface Swept {
  dropUnused(before: number, signal: AbortSignal): Promise<unknown>;
}

/** Options of the sweeps. */
export interface SweepOptions {
  /** Days after which unused data expires. */
  readonly keepDays: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Called with a sweep's error; the next sweep retries. */
  readonly onFault: (error: unknown) => void;
}

/** Expires unused data now and every hour. The function returned stops it, and resolves when no sweep runs any more. */
export function startSweeps(memprefix: Swept, { keepDays, now, onFault }: SweepOptions): () => Promise<void> {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let sweep: Promise<void>;
  const start = () => {
    sweep = memprefix
      .dropUnused(now() - keepDays * DAY_MS, stopping.signal)
      .then(() => {}, onFault)
      .then(() => {
        if (!stopping.signal.aborted) timer = setTimeout(start, HOUR_MS).unref();
      });
  };
  start();
  return async () => {
    stopping.abort();
    clearTimeout(timer);
    await sweep;
  };
}
