import { LruMap } from "../text/collections.js";
import { BESIDE_ERROR, type CacheReport, stepOf } from "./cache-report.js";
import type { CachedRun } from "./cached-runs.js";
import type { CachingEngine, CapacityOrigin, UnderWay } from "./caching-engine.js";
import { CapacityEvidence } from "./capacity-evidence.js";
import type { CacheHandle, CacheLookup, CachePrompt } from "./engine-cache.js";
import { KEEPS_ALL, type ResidencyModel } from "./residency.js";

/** Known streams, and prompts whose reports are awaited. */
const MOST_STREAMS = 16_384;
/** Prompts of a stream that can be released; older ones were sent long ago. */
const MOST_OPEN = 16;
const MOST_HEADS = 1_024;
const MOST_USERS = 8;
/** Share of the cache that streams plan with, so that a late or growing one does not evict all others. */
const MARGIN = 0.95;
/** Weight of the newest turn in the mean number of other streams between two turns. */
const NEWEST = 0.5;
/** A miss after a longer pause says nothing about capacity: the engine may have a TTL or have restarted. */
const LONGEST_PAUSE_MS = 5 * 60_000;
/** Weight of the newest report in the mean ratio of tokens, and plausible bounds of that ratio. */
const NEWEST_RATIO = 0.2;
const [LEAST_RATIO, MOST_RATIO] = [0.5, 4];

interface StreamPrompt {
  readonly handle: CacheHandle;
  readonly leaf: CachedRun;
  readonly total: number;
  readonly head: KnownHead;
  /** Mean streams, itself included, between two of its turns; null after one turn. */
  readonly among: number | null;
}

interface SentPrompt extends StreamPrompt, Pick<CachePrompt, "user" | "known"> {
  readonly stream: Stream;
  /** Its time in the cache's own order. */
  readonly at: number;
  /** When the stream's previous prompt was used last. */
  readonly before: number;
  /** Tokens that others used since then. */
  readonly distance: number;
  readonly underWay: UnderWay;
}

interface Stream {
  /** The newest prompt that cannot be released. */
  settled: StreamPrompt | null;
  open: SentPrompt[];
  /** Whether the engine may never have computed its newest reported prompt. */
  isDoubtful: boolean;
}

interface KnownHead {
  readonly run: CachedRun;
  readonly users: Map<string, number>;
}

interface Sharing {
  /** See {@link StreamPrompt.among}. In the second turn the streams since its first; before it, all that are cached. */
  readonly among: number;
  /** Streams whose newest prompts came since its own. */
  readonly tips: number;
  /** Tokens used since its newest prompt, without its own; infinite if it has none. */
  readonly between: number;
  /** Tokens of its newest prompt that others have used since. */
  readonly shared: number;
}

/** An engine's cache as planned for, in tokens of memprefix's counter. Null: unknown. */
export interface CacheState {
  readonly capacityTokens: number | null;
  readonly capacityFrom: CapacityOrigin | null;
  readonly blockTokens: number | null;
  /** Streams whose newest prompt is within the capacity. */
  readonly streams: number;
  /** Tokens computed for clients that bypass memprefix, as far as the engine reports. */
  readonly foreignTokens: number;
}

/** A finite LRU cache as its prompts should leave it. Reports change only their tenant's capacity, so false ones mislead only their sender. */
export class PredictedCache {
  readonly #streams = new LruMap<string, Stream>(MOST_STREAMS);
  readonly #sent = new LruMap<CacheHandle, SentPrompt>(MOST_STREAMS);
  readonly #heads = new LruMap<string, KnownHead>(MOST_HEADS);
  readonly #evidence = new CapacityEvidence();
  /** The engine's tokens per token of memprefix's. */
  #ratio = 1;
  /** The newest restart that the evidence includes. */
  #restart: CachingEngine["restart"] = null;
  readonly residency: ResidencyModel;

  /** @param own what else evicts from the cache */
  constructor(
    protected readonly engine: CachingEngine,
    own: ResidencyModel = KEEPS_ALL,
  ) {
    this.residency = {
      ttlMs: own.ttlMs,
      expire: (index, now) => {
        own.expire(index, now);
        const { since } = this.engine.runs.within(this.capacity);
        if (since !== null) index.dropUnusedSince(since - 1);
      },
    };
  }

  /** In tokens; infinite while unknown. */
  get capacity(): number {
    const { capacityTokens, restart } = this.engine;
    if (restart !== null && restart !== this.#restart) this.#evidence.withdrawMisses(restart.after);
    this.#restart = restart;
    return Math.round(this.#evidence.capacity(capacityTokens === null ? null : capacityTokens / this.#ratio));
  }

  get state(): CacheState {
    const { capacity } = this;
    const isKnown = Number.isFinite(capacity);
    const told = this.engine.capacityTokens;
    const isAsTold = told !== null && capacity === Math.round(told / this.#ratio);
    return {
      capacityTokens: isKnown ? capacity : null,
      capacityFrom: isKnown ? (isAsTold ? this.engine.capacityFrom : "reports") : null,
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

  /** The stream's newest prompt. */
  newestOf(name: string): Pick<StreamPrompt, "handle"> | null {
    return newestOf(this.#streams.peek(name));
  }

  /** Converts to the engine's tokens; restores the whole blocks of {@link CacheLookup.wholeBlocks}. */
  engineTokens(tokens: number): number {
    const step = this.engine.blockTokens ?? 1;
    return Math.round((tokens * this.#ratio) / step) * step;
  }

  /** Counts a prompt before it is computed, so that concurrent plans leave it room. */
  admit(prompt: CachePrompt): void {
    const { handle, user, total, cached, known } = prompt;
    const { digest, tokens } = prompt.head;
    const { runs } = this.engine;
    const at = runs.timeOf(prompt.at);
    const stream = this.#streams.get(prompt.stream) ?? { settled: null, open: [], isDoubtful: false };
    this.#streams.set(prompt.stream, stream);
    const newest = newestOf(stream);
    const sharing = this.#sharing(newest);
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
    const distance = newest === null ? 0 : sharing.between;
    const continued = newest === null ? 0 : Math.min(known, newest.total);
    const sent = { handle, leaf, total, head, among, stream, at, user, before, underWay, distance, known: continued };
    this.#sent.set(handle, sent);
    stream.open.push(sent);
    const [oldest] = stream.open;
    if (oldest !== undefined && stream.open.length > MOST_OPEN) this.#settle(oldest);
  }

  /** Undoes {@link admit} for a prompt that the engine never received, or refused. */
  release(handle: CacheHandle): void {
    const sent = this.#sent.get(handle);
    if (sent === undefined) return;
    this.#sent.delete(handle);
    const { stream, leaf, user, head, underWay, at } = sent;
    this.engine.withdrawn(underWay);
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

  /** Learns from a prompt's first report, which refreshes its last use. Null: the client left before there was one. */
  report(handle: CacheHandle, report: CacheReport | null, reportedAt: number): void {
    const sent = this.#sent.peek(handle);
    if (sent === undefined) return;
    const { stream, known, total, before } = sent;
    if (report === null) stream.isDoubtful = true;
    if (report === null || !(report.cachedTokens >= 0)) return;
    this.#sent.delete(handle);
    const { cachedTokens, promptTokens, besideTokens: beside = 0 } = report;
    const headTokens = sent.head.run.end;
    const scale = promptTokens === null || promptTokens <= 0 ? 1 : (total + beside) / promptTokens;
    // Tools come first.
    const cached = Math.max(0, cachedTokens * scale - beside);
    if (promptTokens !== null && promptTokens > 0 && total > 0) {
      const ratio = Math.min(MOST_RATIO, Math.max(LEAST_RATIO, promptTokens / (total + beside)));
      this.#ratio += NEWEST_RATIO * (ratio - this.#ratio);
      this.engine.computed(ratio * (total + beside) * (1 - Math.min(1, cachedTokens / promptTokens)), sent.underWay);
    } else this.engine.computed((total - Math.min(cached, total)) * this.#ratio, sent.underWay);
    const isOwn = known > headTokens;
    const { restart } = this.engine;
    const isAcrossRestart = restart !== null && before <= restart.by && sent.at >= restart.after;
    const isEvidence = (!stream.isDoubtful || cached >= known) && Number.isFinite(sent.distance) && !isAcrossRestart;
    if (isOwn && isEvidence && sent.at - before <= LONGEST_PAUSE_MS) {
      const distance = { distance: sent.distance, known, head: headTokens + BESIDE_ERROR * beside };
      this.#evidence.take(distance, cached, stepOf(cachedTokens) * scale, this.engine.runs.timeOf(reportedAt));
    }
    if (isOwn) stream.isDoubtful = false;
    this.#settle(sent, this.engine.runs.timeOf(reportedAt));
  }

  /** Makes this prompt and its stream's earlier ones permanent. */
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
    for (const run of sharedRuns(leaf)) tokens += Math.min(run.end - run.from, this.#leftAt(run.usedAt));
    return tokens;
  }

  /** Tokens last used then that are not evicted; infinite if none is known to be. */
  #leftAt(at: number): number {
    const { tokens } = this.engine.runs.above(at);
    return tokens === Number.POSITIVE_INFINITY ? 0 : Math.max(0, Math.floor(this.capacity - tokens));
  }

  /** In an outgrown cache, the first stream over its fair share starts afresh and the others grow on, up to twice a fair share. So all is used. */
  #share({ among, between, shared }: Sharing): number {
    const { capacity } = this;
    if (capacity === Number.POSITIVE_INFINITY) return capacity;
    // Concurrent prompts hold whole blocks, their answers' too. One that finds none waits for another to end.
    const { blockTokens, atOnce } = this.engine;
    const unfilled = (Math.min(among, atOnce) * (blockTokens ?? 0)) / this.#ratio;
    const left = Math.max(0, MARGIN * capacity - shared - unfilled);
    return shared + Math.max(left / among, left - between);
  }

  #sharing(newest: StreamPrompt | null): Sharing {
    const { runs } = this.engine;
    if (newest === null) {
      // All cached streams, and this one.
      return { among: runs.within(this.capacity).tips + 1, tips: 0, between: Number.POSITIVE_INFINITY, shared: 0 };
    }
    const { leaf } = newest;
    const { tokens, tips } = runs.above(leaf.usedAt);
    const shared = sharedRuns(leaf).reduce((sum, { from, end }) => sum + end - from, 0);
    return { among: newest.among ?? tips + 1, tips, between: Math.max(0, tokens - shared), shared };
  }
}

function newestOf(stream: Stream | undefined): StreamPrompt | null {
  return stream?.open.at(-1) ?? stream?.settled ?? null;
}

/** The runs of a prompt that others have used since its end was. */
function sharedRuns(leaf: CachedRun): readonly CachedRun[] {
  const shared: CachedRun[] = [];
  for (let run = leaf.before; run !== null; run = run.before) if (run.usedAt > leaf.usedAt) shared.push(run);
  return shared;
}
