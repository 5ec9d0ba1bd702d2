import { LruMap } from "../text/collections.js";
import { BESIDE_ERROR, type CacheReport, IN_FLIGHT_MS, stepOf } from "./cache-report.js";
import type { CachedRun } from "./cached-runs.js";
import type { CachingEngine, CapacityOrigin, EngineRestart, UnderWay } from "./caching-engine.js";
import { CapacityEvidence } from "./capacity-evidence.js";
import type { CacheHandle, CacheLookup, CachePrompt, EngineCache } from "./engine-cache.js";
import { KEEPS_ALL, type ResidencyConfig, type ResidencyModel } from "./residency.js";

/** Streams that are known, and prompts whose reports are awaited. */
const MOST_STREAMS = 16_384;
/** Prompts of one stream that can be taken back: older ones were sent long ago. */
const MOST_OPEN = 16;
/** Instructions that are known, and users who are known to have sent them. */
const MOST_HEADS = 1_024;
const MOST_USERS = 8;
/** Share of the cache that streams plan with, so that one that comes late or grows does not push out all others. */
const MARGIN = 0.95;
/** Weight of the newest turn in a stream's mean of how many others come between two of its turns. */
const NEWEST = 0.5;
/** After so long a pause a miss says nothing of how much an engine holds: it may keep prefixes for a time only, or have been restarted. */
const LONGEST_PAUSE_MS = 5 * 60_000;
/** Weight of the newest report in the mean ratio of tokens, and the bounds of what can be a tokenizer's. */
const NEWEST_RATIO = 0.2;
const [LEAST_RATIO, MOST_RATIO] = [0.5, 4];

/** A prompt of a stream. */
interface StreamPrompt {
  readonly handle: CacheHandle;
  readonly leaf: CachedRun;
  readonly total: number;
  readonly head: KnownHead;
  /** Mean streams, itself included, that come from one of its turns to the next; null: it had one turn. */
  readonly among: number | null;
}

/** A prompt whose report is to come. */
interface SentPrompt extends StreamPrompt, Pick<CachePrompt, "user" | "cached" | "known"> {
  readonly stream: Stream;
  /** When it was admitted, as it counts in the cache. */
  readonly at: number;
  /** When the stream's prompt before was used last. */
  readonly before: number;
  /** Tokens that others used since then. */
  readonly distance: number;
  readonly doubtfulBefore: DoubtfulPrompt | null;
  readonly headTokens: number;
  readonly underWay: UnderWay;
}

/** A prompt that the engine may never have computed. */
interface DoubtfulPrompt {
  readonly handle: CacheHandle;
  /** When it was sent. */
  readonly at: number;
}

interface Stream {
  /** The newest prompt that cannot be taken back. */
  settled: StreamPrompt | null;
  /** Later ones, oldest first. */
  open: SentPrompt[];
  /** Null: none since one that should have found something of its own cached. */
  doubtful: DoubtfulPrompt | null;
}

/** Instructions that a tenant's prompts begin with. */
interface KnownHead {
  readonly run: CachedRun;
  /** Prompts of each user who sent them. */
  readonly users: Map<string, number>;
}

/** What a stream shares the cache with. */
interface Sharing {
  /** See {@link StreamPrompt.among}; in its second turn those that came since its first, and before it, all that have something in the cache. */
  readonly among: number;
  /** Streams whose newest prompts came since its own. */
  readonly tips: number;
  /** Tokens that were used since its newest prompt, but for its own; infinite where it has none. */
  readonly between: number;
  /** Tokens of its newest prompt that others have used since. */
  readonly shared: number;
}

/** An engine's cache as it is planned for. */
export interface CacheState {
  /** Tokens that it is taken to hold, by memprefix's counter; null: not known. */
  readonly capacityTokens: number | null;
  /** Null: the capacity is not known. */
  readonly capacityFrom: CapacityOrigin | null;
  /** Of it, what the stream of the tenant's newest prompt could have; null: not known, or no prompt yet. See {@link CacheLookup.shareTokens}. */
  readonly shareTokens: number | null;
  /** Tokens of its blocks; null: not known. */
  readonly blockTokens: number | null;
  /** Conversations, and users' single prompts, whose newest prompt lies within the capacity. */
  readonly streams: number;
  /** Tokens that it computed for clients that do not come through memprefix, as far as it says so. */
  readonly foreignTokens: number;
}

/**
 * An engine's cache as its prompts should leave it: finite, and evicted in LRU order. What has more tokens above it than the cache holds is gone.
 * How much is used is everybody's; how much is held is configured, said by the engine, or learned from the tenant's own reports, so that one that
 * lies misleads itself. Until something was missed, a cache of unknown capacity has no end.
 */
export class PredictedCache implements EngineCache {
  readonly #streams = new LruMap<string, Stream>(MOST_STREAMS);
  readonly #sent = new LruMap<CacheHandle, SentPrompt>(MOST_STREAMS);
  /** By their digest. */
  readonly #heads = new LruMap<string, KnownHead>(MOST_HEADS);
  readonly #evidence = new CapacityEvidence();
  /** The engine's tokens of one of memprefix's. */
  #ratio = 1;
  /** The newest one of which the evidence knows. */
  #restart: EngineRestart | null = null;
  /** What the stream of the newest prompt shared the cache with. */
  #newest: Sharing | null = null;
  readonly residency: ResidencyModel;

  /** @param own what leaves the cache by other rules besides */
  constructor(
    private readonly engine: CachingEngine,
    own: ResidencyModel = KEEPS_ALL,
  ) {
    const capacity = () => this.capacity;
    this.residency = {
      expire: (index, now) => {
        own.expire(index, now);
        const since = this.heldSince;
        if (since !== null) index.dropUnusedSince(since - 1);
      },
      get limits(): ResidencyConfig {
        const tokens = capacity();
        if (tokens === Number.POSITIVE_INFINITY) return own.limits ?? { kind: "all" };
        return own.limits?.kind === "ttl"
          ? { kind: "ttl-and-capacity", ttlMs: own.limits.ttlMs, tokens }
          : { kind: "capacity", tokens };
      },
    };
  }

  /** Tokens that the engine is taken to hold; infinite until it is known. */
  get capacity(): number {
    const { capacityTokens, restart } = this.engine;
    if (restart !== null && restart !== this.#restart) this.#evidence.withdrawMisses(restart.after);
    this.#restart = restart;
    return Math.round(this.#evidence.capacity(capacityTokens === null ? null : capacityTokens / this.#ratio));
  }

  /** What was last used before this time is gone, in milliseconds since the epoch; null: nothing is. */
  get heldSince(): number | null {
    return this.engine.runs.within(this.capacity).since;
  }

  get state(): CacheState {
    const { capacity } = this;
    const isKnown = Number.isFinite(capacity);
    const told = this.engine.capacityTokens;
    const isAsTold = told !== null && capacity === Math.round(told / this.#ratio);
    return {
      capacityTokens: isKnown ? capacity : null,
      capacityFrom: isKnown ? (isAsTold ? this.engine.capacityFrom : "reports") : null,
      shareTokens: isKnown && this.#newest !== null ? Math.round(this.#share(this.#newest)) : null,
      blockTokens: this.engine.blockTokens,
      streams: this.engine.runs.within(capacity).tips,
      foreignTokens: this.engine.foreignTokens,
    };
  }

  lookup(name: string): CacheLookup {
    const newest = newestOf(this.#streams.get(name));
    const { blockTokens } = this.engine;
    const ratio = this.#ratio;
    return {
      residentTokens: newest === null ? Number.POSITIVE_INFINITY : this.#residentOf(newest),
      shareTokens: this.#share(this.#sharing(newest)),
      blockTokens: blockTokens === null ? null : Math.max(1, Math.round(blockTokens / ratio)),
      residency: this.residency,
      heldHead: (digest, tokens) => this.#heldHead(digest, tokens),
      wholeBlocks: (tokens) =>
        blockTokens === null || blockTokens === 1
          ? tokens
          : Math.floor((Math.floor((tokens * ratio) / blockTokens) * blockTokens) / ratio),
    };
  }

  /** The stream's newest prompt, and its tokens by memprefix's counter; null: none is known. */
  newestOf(name: string): Pick<StreamPrompt, "handle" | "total"> | null {
    return newestOf(this.#streams.peek(name));
  }

  /** About how many of the engine's tokens so many of memprefix's are: whole blocks again of what {@link CacheLookup.wholeBlocks} left. */
  engineTokens(tokens: number): number {
    const step = this.engine.blockTokens ?? 1;
    return Math.round((tokens * this.#ratio) / step) * step;
  }

  admit({ stream: name, user, handle, total, cached, known, head: { digest, tokens }, ...prompt }: CachePrompt): void {
    const { runs } = this.engine;
    const at = runs.timeOf(prompt.at);
    const stream = this.#streams.get(name) ?? { settled: null, open: [], doubtful: null };
    this.#streams.set(name, stream);
    const newest = newestOf(stream);
    const sharing = this.#sharing(newest);
    this.#newest = sharing;
    const underWay = { at, computed: this.#ratio * Math.max(0, total - cached), cached: this.#ratio * cached };
    this.engine.sends(underWay);
    const head = this.#headOf(digest, tokens, user);
    const continues = newest !== null && newest.head === head && known > tokens;
    const leaf = continues
      ? runs.prompt(newest.leaf, Math.min(known, newest.total, total), total)
      : runs.prompt(head.run, Math.min(tokens, total), total);
    const before = newest?.leaf.usedAt ?? at;
    const among = newest === null ? null : sharing.among + NEWEST * (sharing.tips + 1 - sharing.among);
    if (newest !== null) runs.tip(newest.leaf, -1);
    runs.use(leaf, at);
    runs.tip(leaf, 1);
    const sent: SentPrompt = {
      handle,
      leaf,
      total,
      head,
      among,
      stream,
      at,
      user,
      cached,
      known: newest === null ? 0 : Math.min(known, newest.total),
      before,
      distance: newest === null ? 0 : sharing.between,
      doubtfulBefore: stream.doubtful,
      headTokens: tokens,
      underWay,
    };
    this.#sent.set(handle, sent);
    stream.open.push(sent);
    const [oldest] = stream.open;
    if (oldest !== undefined && stream.open.length > MOST_OPEN) this.#settle(oldest);
  }

  release(handle: CacheHandle): void {
    const sent = this.#sent.get(handle);
    if (sent === undefined) return;
    this.#sent.delete(handle);
    const { stream, leaf, user, head, underWay, at } = sent;
    this.engine.withdrawn(underWay);
    if (stream.doubtful?.handle === handle) stream.doubtful = sent.doubtfulBefore;
    if (!stream.open.includes(sent)) return;
    const { runs } = this.engine;
    const wasNewest = newestOf(stream) === sent;
    if (wasNewest) runs.tip(leaf, -1);
    stream.open = stream.open.filter((other) => other !== sent);
    runs.release(leaf, at);
    const count = head.users.get(user) ?? 0;
    if (count > 1) head.users.set(user, count - 1);
    else head.users.delete(user);
    const newest = newestOf(stream);
    if (wasNewest && newest !== null) runs.tip(newest.leaf, 1);
  }

  report(handle: CacheHandle, report: CacheReport | null, reportedAt: number): void {
    if (report === null) {
      const sent = this.#sent.peek(handle);
      if (sent !== undefined) sent.stream.doubtful = { handle, at: sent.at };
      return;
    }
    const { cachedTokens, promptTokens, besideTokens: beside = 0 } = report;
    const sent = this.#sent.get(handle);
    if (sent === undefined || !(cachedTokens >= 0)) return;
    this.#sent.delete(handle);
    const { stream, known, total, before, headTokens } = sent;
    const scale = promptTokens === null || promptTokens <= 0 ? 1 : (total + beside) / promptTokens;
    // What is counted besides comes first.
    const cached = Math.max(0, cachedTokens * scale - beside);
    if (promptTokens !== null && promptTokens > 0 && total > 0) {
      const ratio = Math.min(MOST_RATIO, Math.max(LEAST_RATIO, promptTokens / (total + beside)));
      this.#ratio += NEWEST_RATIO * (ratio - this.#ratio);
      this.engine.computed(ratio * (total + beside) * (1 - Math.min(1, cachedTokens / promptTokens)), sent.underWay);
    } else this.engine.computed((total - Math.min(cached, total)) * this.#ratio, sent.underWay);
    const { doubtful } = stream;
    const isOwn = known > headTokens;
    if (
      isOwn &&
      (doubtful === null || cached >= known) &&
      sent.at - before <= LONGEST_PAUSE_MS &&
      Number.isFinite(sent.distance) &&
      !this.#isAcrossRestart(sent)
    ) {
      const distance = { distance: sent.distance, known, head: headTokens + BESIDE_ERROR * beside };
      this.#evidence.take(distance, cached, stepOf(cachedTokens) * scale, this.engine.runs.timeOf(reportedAt));
    }
    // What was missed of the doubtful prompt is expected no longer, unless it may have been in flight.
    const isSettled = doubtful !== null && sent.doubtfulBefore === doubtful && sent.at - doubtful.at >= IN_FLIGHT_MS;
    if (doubtful?.handle === handle || (isOwn && isSettled)) stream.doubtful = null;
    this.#settle(sent, this.engine.runs.timeOf(reportedAt));
  }

  /** A prompt stays, and those of its stream before it. */
  #settle(sent: SentPrompt, to = sent.at): void {
    const { stream } = sent;
    const { runs } = this.engine;
    const place = stream.open.indexOf(sent);
    if (place < 0) return;
    for (const earlier of stream.open.slice(0, place)) runs.settle(earlier.leaf, earlier.at);
    stream.open = stream.open.slice(place + 1);
    stream.settled = sent;
    runs.settle(sent.leaf, sent.at, to);
  }

  /** Whether the engine may have been started again between a prompt and the one before it of its stream. */
  #isAcrossRestart({ before, at }: SentPrompt): boolean {
    const { restart } = this.engine;
    return restart !== null && before <= restart.by && at >= restart.after;
  }

  #headOf(digest: string, tokens: number, user: string): KnownHead {
    const head = this.#heads.get(digest) ?? { run: this.engine.runs.head(tokens), users: new Map<string, number>() };
    this.#heads.set(digest, head);
    const { users } = head;
    if (users.has(user) || users.size < MOST_USERS) users.set(user, (users.get(user) ?? 0) + 1);
    return head;
  }

  #heldHead(digest: string, tokens: number): number {
    const head = this.#heads.peek(digest);
    if (head === undefined || head.users.size < 2) return 0;
    return Math.min(tokens, this.#leftAt(head.run.usedAt));
  }

  #residentOf({ leaf }: StreamPrompt): number {
    let tokens = this.#leftAt(leaf.usedAt);
    for (let run = leaf.before; run !== null; run = run.before)
      if (run.usedAt > leaf.usedAt) tokens += Math.min(run.end - run.from, this.#leftAt(run.usedAt));
    return tokens;
  }

  /** Tokens of what was last used then that are not displaced; infinite where nothing is known to be. */
  #leftAt(at: number): number {
    const { tokens } = this.engine.runs.above(at);
    return tokens === Number.POSITIVE_INFINITY ? 0 : Math.max(0, Math.floor(this.capacity - tokens));
  }

  /**
   * Where prompts outgrow the cache, the first that has more than its fair share starts afresh, and the others grow on: so all of the cache is used,
   * and prompts become up to twice as long as if each kept to a fair share. What others send too is there once.
   */
  #share({ among, between, shared }: Sharing): number {
    const { capacity } = this;
    if (capacity === Number.POSITIVE_INFINITY) return capacity;
    // While prompts are worked on together, each holds whole blocks, its answer's too: one that finds none waits for another to end.
    const { blockTokens, atOnce } = this.engine;
    const unfilled = (Math.min(among, atOnce) * (blockTokens ?? 0)) / this.#ratio;
    const left = Math.max(0, MARGIN * capacity - shared - unfilled);
    return shared + Math.max(left / among, left - between);
  }

  #sharing(newest: StreamPrompt | null): Sharing {
    const { runs } = this.engine;
    if (newest === null) {
      // All streams that have something in the cache, and this one.
      const among = runs.within(this.capacity).tips + 1;
      return { among, tips: 0, between: Number.POSITIVE_INFINITY, shared: 0 };
    }
    const { leaf } = newest;
    const { tokens, tips } = runs.above(leaf.usedAt);
    let shared = 0;
    for (let run = leaf.before; run !== null; run = run.before)
      if (run.usedAt > leaf.usedAt) shared += run.end - run.from;
    return { among: newest.among ?? tips + 1, tips, between: Math.max(0, tokens - shared), shared };
  }
}

function newestOf(stream: Stream | undefined): StreamPrompt | null {
  return stream?.open.at(-1) ?? stream?.settled ?? null;
}
