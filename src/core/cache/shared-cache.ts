import type { EngineModel } from "../cost/engine-model.js";
import { LruMap } from "../text/collections.js";
import { BESIDE_ERROR, type CacheReport, IN_FLIGHT_MS, stepOf } from "./cache-report.js";
import { CapacityEvidence } from "./capacity-evidence.js";
import type { CapacityOrigin, EngineCache, EngineRestart, UnderWay } from "./engine-cache.js";
import { KEEPS_ALL, type ResidencyConfig, type ResidencyModel } from "./residency.js";
import type { BlockChain } from "./resident-blocks.js";

/*
 * One engine's prefix cache as all its users fill it: finite, evicted in LRU order (docs/internals/algorithms.md, "A shared cache"). What
 * has more tokens above it than the cache holds is gone. The capacity is configured, learned from reports, or both; until something was missed,
 * the cache has no end.
 */

/** Streams that are known; of the least recently used ones nothing is resident in any cache that is near its limit. */
const MOST_STREAMS = 16_384;
/** Instructions that are known. */
const MOST_HEADS = 1_024;
/** Prompts that are known in the engine's tokens: a long one has some hundred blocks. */
const MOST_TOKENIZED = 1_024;
/** Share of the cache that streams plan with, so that one that comes late or grows does not push out all others. */
const MARGIN = 0.95;
/** Weight of the newest turn in a stream's mean of how many others come between two of its turns. */
const NEWEST = 0.5;
/** After so long a pause a miss says nothing of how much an engine holds: it may keep prefixes for a time only, or have been restarted. */
const LONGEST_PAUSE_MS = 5 * 60_000;
/** Weight of the newest report in the mean ratio of tokens, and the bounds of what can be a tokenizer's. */
const NEWEST_RATIO = 0.2;
const [LEAST_RATIO, MOST_RATIO] = [0.5, 4];

/** A prompt that an engine is about to compute. Tokens are estimates of one counter. */
export interface SharedPrompt {
  /** Whose prompts continue each other: a conversation, or a user's single prompts. */
  readonly stream: string;
  /** Whose stream. */
  readonly user: string;
  readonly requestId: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly total: number;
  /** Those expected to be cached. */
  readonly cached: number;
  /** Those that would be if nothing were ever evicted. */
  readonly known: number;
  readonly head: SharedHead;
}

/** The instructions that a prompt begins with, which others' prompts may share. */
export interface SharedHead {
  readonly digest: string;
  readonly tokens: number;
}

interface Stream {
  /** Of its newest prompt. */
  requestId: string;
  at: number;
  total: number;
  head: SharedHead;
  /** Mean streams, itself included, that come from one of its turns to the next; null: it had one turn. */
  among: number | null;
  /** Null: none since one that should have found something of its own cached. */
  doubtful: DoubtfulPrompt | null;
}

/** A prompt that the engine may never have computed. */
interface DoubtfulPrompt {
  readonly requestId: string;
  /** When it was sent. */
  readonly at: number;
}

/** Instructions that a tenant's prompts begin with. */
interface HeadUse {
  /** The prompt that used them last. */
  readonly requestId: string;
  /** When it did. */
  readonly at: number;
  /** The only user who has sent them; null: several have. */
  readonly by: string | null;
}

/** A prompt in the engine's own tokens. */
export interface TokenizedPrompt {
  readonly tokens: number;
  /** Of its whole blocks. */
  readonly chains: readonly BlockChain[];
}

/** A prompt whose report is to come. */
interface Sent {
  readonly stream: string;
  readonly at: number;
  /** When its tokens were used last. */
  readonly usedAt: number;
  /** The stream as it was; null: it was new. */
  readonly since: Readonly<Stream> | null;
  /** When the stream's prompt before was used last. */
  readonly before: number;
  /** Tokens that were taken from there. */
  readonly taken: number;
  /** Its instructions as they were used before; null: never. */
  readonly headBefore: HeadUse | null;
  /** Tokens of them that were taken from there. */
  readonly headTaken: number;
  /** The prompt that used its instructions next; null: none yet. */
  readonly headNext: string | null;
  /** The stream's next prompt, and how many tokens that one took of this one's; null: none yet. */
  readonly next: { readonly requestId: string; readonly taken: number } | null;
  /** Expected to be cached. */
  readonly cached: number;
  /** Tokens used since the stream's prompt before, but for its own instructions. */
  readonly distance: number;
  readonly known: number;
  readonly head: SharedHead;
  readonly total: number;
  readonly underWay: UnderWay;
}

/** What a stream shares the cache with. */
interface Sharing {
  /** See {@link Stream.among}; in its second turn those that came since its first, and before it, all that have something in the cache. */
  readonly among: number;
  /** Streams whose newest prompts came since its own. */
  readonly tips: number;
  /** Tokens that were used since its newest prompt, but for its instructions; infinite where it has none. */
  readonly between: number;
  /** Tokens of its instructions where others have used them since. */
  readonly headTokens: number;
}

/** An engine's cache as it is planned for. */
export interface CacheState {
  /** Tokens that it is taken to hold, by memprefix's counter; null: not known. */
  readonly capacityTokens: number | null;
  /** Null: the capacity is not known. */
  readonly capacityFrom: CapacityOrigin | null;
  /** Of it, what the stream of the tenant's newest prompt could have; null: not known, or no prompt yet. See {@link SharedCache.shareOf}. */
  readonly shareTokens: number | null;
  /** Tokens of its blocks; null: not known. */
  readonly blockTokens: number | null;
  /** Conversations, and users' single prompts, whose newest prompt lies within the capacity. */
  readonly streams: number;
  /** Tokens that it computed for clients that do not come through memprefix, as far as it says so. */
  readonly foreignTokens: number;
}

/**
 * An engine's cache as one tenant's prompts find it. How much is used is everybody's; how much is held is learned from the tenant's own
 * reports, so that one that lies misleads itself.
 */
export class SharedCache {
  readonly #streams = new LruMap<string, Stream>(MOST_STREAMS);
  readonly #sent = new LruMap<string, Sent>(MOST_STREAMS);
  /** By their digest. */
  readonly #heads = new LruMap<string, HeadUse>(MOST_HEADS);
  readonly #evidence = new CapacityEvidence();
  /** Prompts that the engine made tokens of, by request. */
  readonly #tokenized = new LruMap<string, TokenizedPrompt>(MOST_TOKENIZED);
  /** The engine's tokens of one of memprefix's. */
  #ratio = 1;
  /** The newest one of which the evidence knows. */
  #restart: EngineRestart | null = null;
  /** What the stream of the newest prompt shared the cache with. */
  #newest: Sharing | null = null;

  constructor(private readonly engine: EngineCache) {}

  /** Tokens that the engine is taken to hold; infinite until it is known. */
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
      shareTokens: isKnown && this.#newest !== null ? Math.round(this.#share(this.#newest)) : null,
      blockTokens: this.engine.blockTokens,
      streams: this.engine.uses.within(capacity).tips,
      foreignTokens: this.engine.foreignTokens,
    };
  }

  /** The model with the block size that the engine reports, by memprefix's counter. */
  inItsBlocks(model: EngineModel): EngineModel {
    const { blockTokens } = this.engine;
    return blockTokens === null ? model : { ...model, blockTokens: Math.max(1, Math.round(blockTokens / this.#ratio)) };
  }

  /** How many of so many leading tokens the engine can have cached: those of whole blocks, where it says how long these are. */
  readonly wholeBlocks = (tokens: number): number => {
    const { blockTokens } = this.engine;
    if (blockTokens === null || blockTokens === 1) return tokens;
    return Math.floor((Math.floor((tokens * this.#ratio) / blockTokens) * blockTokens) / this.#ratio);
  };

  /** About how many of the engine's tokens so many of memprefix's are: whole blocks again of what {@link wholeBlocks} left. */
  engineTokens(tokens: number): number {
    const { blockTokens } = this.engine;
    const step = blockTokens ?? 1;
    return Math.round((tokens * this.#ratio) / step) * step;
  }

  served({ stream, user, requestId, total, cached, known: followed, head, ...prompt }: SharedPrompt): void {
    const { uses } = this.engine;
    const at = uses.timeOf(prompt.at);
    const before = this.#streams.get(stream);
    const sharing = this.#sharing(before);
    this.#newest = sharing;
    const underWay = { at, computed: this.#ratio * Math.max(0, total - cached), cached: this.#ratio * cached };
    this.engine.sends(underWay);
    // Instructions are there once, and were used last by whoever sent them last.
    const headBefore = this.#heads.get(head.digest) ?? null;
    const headTaken = headBefore === null ? 0 : uses.take(headBefore.at, head.tokens, 0);
    this.#heads.set(head.digest, { requestId, at, by: headBefore === null || headBefore.by === user ? user : null });
    this.#changeSent(headBefore?.requestId, { headNext: requestId });
    const lying = { at, usedAt: at, since: null, before: at, taken: 0, next: null, distance: 0, known: 0 };
    const sent = { ...lying, stream, headBefore, headTaken, headNext: null, cached, head, total, underWay };
    if (before === undefined) {
      this.#streams.set(stream, { requestId, at, total, head, among: null, doubtful: null });
      this.#sent.set(requestId, sent);
    } else {
      const known = Math.min(followed, before.total);
      const taken = uses.take(before.at, ownOf(Math.min(cached, before.total), head), 1);
      const { between: distance } = sharing;
      this.#sent.set(requestId, { ...sent, since: { ...before }, before: before.at, taken, distance, known });
      this.#changeSent(before.requestId, { next: { requestId, taken } });
      const among = sharing.among + NEWEST * (sharing.tips + 1 - sharing.among);
      Object.assign(before, { requestId, at, total, head, among });
    }
    uses.put(at, total, 1);
  }

  /** Takes a prompt back that the engine never got, or refused: as if it had not been served. */
  withdrawn(requestId: string): void {
    const sent = this.#sent.get(requestId);
    if (sent === undefined) return;
    this.#sent.delete(requestId);
    this.#tokenized.delete(requestId);
    this.engine.withdrawn(sent.underWay);
    const { uses } = this.engine;
    const { head, headBefore, headTaken, headNext, since, next, usedAt } = sent;
    // What later prompts took of it is theirs now: they follow what it followed.
    const isHeadsLast = this.#heads.peek(head.digest)?.requestId === requestId;
    const own = ownOf(sent.total, head) - (next?.taken ?? 0);
    uses.take(usedAt, own + (isHeadsLast ? Math.min(sent.total, head.tokens) : 0), next === null ? 1 : 0);
    this.#changeSent(headBefore?.requestId, { headNext });
    if (!isHeadsLast) this.#changeSent(headNext, { headBefore, headTaken });
    else if (headBefore === null) this.#heads.delete(head.digest);
    else {
      this.#heads.set(head.digest, headBefore);
      uses.putBack(headBefore.at, headTaken, 0);
    }
    const taken = next === null ? 0 : Math.min(sent.taken, next.taken);
    this.#changeSent(since?.requestId, { next: next === null ? null : { ...next, taken } });
    const stream = this.#streams.get(sent.stream);
    if (next !== null) {
      uses.putBack(sent.before, sent.taken - taken, 0);
      this.#changeSent(next.requestId, { since, before: sent.before, taken });
    } else if (stream?.requestId !== requestId) return;
    else if (since === null) this.#streams.delete(sent.stream);
    else {
      const doubtful = stream.doubtful?.requestId === requestId ? since.doubtful : stream.doubtful;
      this.#streams.set(sent.stream, { ...since, doubtful });
      uses.putBack(sent.before, sent.taken, 1);
    }
  }

  /** Changes what is kept of a prompt whose report is to come; of another nothing is. */
  #changeSent(requestId: string | null | undefined, change: Partial<Sent>): void {
    const sent = requestId == null ? undefined : this.#sent.peek(requestId);
    if (sent !== undefined) Object.assign(sent, change);
  }

  /** A prompt's client left before the engine said anything of it: what is missed of it later says nothing of how much is held. */
  interrupted(requestId: string): void {
    const sent = this.#sent.peek(requestId);
    const stream = sent === undefined ? undefined : this.#streams.peek(sent.stream);
    if (sent !== undefined && stream !== undefined) stream.doubtful = { requestId, at: sent.at };
  }

  /** Learns from the first report of a prompt. Its tokens count as used now, when its answer has ended. */
  reported(requestId: string, report: CacheReport, reportedAt: number): void {
    const { cachedTokens, promptTokens, besideTokens: beside = 0 } = report;
    const sent = this.#sent.get(requestId);
    if (sent === undefined || !(cachedTokens >= 0)) return;
    const at = this.engine.uses.timeOf(reportedAt);
    this.#sent.delete(requestId);
    if (sent.since !== null) this.#tokenized.delete(sent.since.requestId);
    const { known, total, before } = sent;
    const scale = promptTokens === null || promptTokens <= 0 ? 1 : (total + beside) / promptTokens;
    // What is counted besides comes first.
    const cached = Math.max(0, cachedTokens * scale - beside);
    if (promptTokens !== null && promptTokens > 0 && total > 0) {
      const ratio = Math.min(MOST_RATIO, Math.max(LEAST_RATIO, promptTokens / (total + beside)));
      this.#ratio += NEWEST_RATIO * (ratio - this.#ratio);
      this.engine.computed(ratio * (total + beside) * (1 - Math.min(1, cachedTokens / promptTokens)), sent.underWay);
    } else this.engine.computed((total - Math.min(cached, total)) * this.#ratio, sent.underWay);
    const { head } = sent;
    this.engine.uses.take(before, ownOf(Math.min(cached, known), head) - ownOf(sent.cached, head), 0);
    const stream = this.#streams.get(sent.stream);
    const doubtful = stream?.doubtful ?? null;
    const isOwn = known > head.tokens;
    if (
      isOwn &&
      (doubtful === null || cached >= known) &&
      sent.at - before <= LONGEST_PAUSE_MS &&
      Number.isFinite(sent.distance) &&
      !this.#isAcrossRestart(sent)
    )
      this.#evidence.take(
        { ...sent, head: head.tokens + BESIDE_ERROR * beside },
        cached,
        stepOf(cachedTokens) * scale,
        at,
      );
    if (stream === undefined) return;
    // What was missed of the doubtful prompt is expected no longer, unless it may have been in flight.
    const isSettled = doubtful !== null && sent.since?.doubtful === doubtful && sent.at - doubtful.at >= IN_FLIGHT_MS;
    if (doubtful?.requestId === requestId || (isOwn && isSettled)) stream.doubtful = null;
    if (stream.at > at) return;
    const used = this.#heads.peek(stream.head.digest);
    const isHeadsLast = used?.requestId === stream.requestId;
    const moved = this.engine.uses.take(stream.at, isHeadsLast ? stream.total : ownOf(stream.total, stream.head), 1);
    if (isHeadsLast) this.#heads.set(stream.head.digest, { ...used, at });
    stream.at = at;
    this.#changeSent(stream.requestId, { usedAt: at });
    this.engine.uses.put(at, moved, 1);
  }

  /** Whether the engine may have been started again between a prompt and the one before it of its stream. */
  #isAcrossRestart({ before, at }: Sent): boolean {
    const { restart } = this.engine;
    return restart !== null && before <= restart.by && at >= restart.after;
  }

  /** Takes a prompt as its engine sees it; before or after it is {@link served}. */
  tokenized(requestId: string, prompt: TokenizedPrompt): void {
    this.#tokenized.set(requestId, prompt);
  }

  /** What was last used before this time is gone, in milliseconds since the epoch; null: nothing is. */
  heldSince(): number | null {
    return this.engine.uses.within(this.capacity).since;
  }

  /**
   * How many leading tokens of a stream's newest prompt are still held: engines evict a prompt from its end. Infinite where nothing is known
   * to be gone.
   */
  residentOf(stream: string): number {
    const known = this.#streams.get(stream);
    if (known === undefined) return Number.POSITIVE_INFINITY;
    const tokenized = this.#tokenized.get(known.requestId);
    const exact = tokenized === undefined ? null : this.engine.residentTokens(tokenized.chains);
    if (tokenized !== undefined && tokenized.tokens > 0 && exact !== null)
      return Math.floor((exact * known.total) / tokenized.tokens);
    const headTokens = this.#sharedHeadTokens(known);
    return this.#leftAt(known.at) + (headTokens > 0 ? Math.min(headTokens, this.#headsLeft(known.head.digest)) : 0);
  }

  /**
   * How many tokens of these instructions are held, whoever sent them last. Those that one user alone has sent are nobody else's to know of: 0.
   */
  readonly heldHead = (digest: string, tokens: number): number =>
    this.#heads.peek(digest)?.by === null ? Math.min(tokens, this.#headsLeft(digest)) : 0;

  #headsLeft(digest: string): number {
    const used = this.#heads.peek(digest);
    return used === undefined ? 0 : this.#leftAt(used.at);
  }

  /** Tokens of what was last used then that are not displaced; infinite where nothing is known to be. */
  #leftAt(at: number): number {
    const { tokens } = this.engine.uses.above(at);
    return tokens === Number.POSITIVE_INFINITY ? 0 : Math.max(0, Math.floor(this.capacity - tokens));
  }

  /**
   * Tokens that a stream's prompts may have to be still resident at its next turn: what the others leave of the cache between two of its turns,
   * at least a fair share. Where prompts outgrow the cache, the first that has more than its fair share starts afresh, and the others grow on:
   * so all of the cache is used, and prompts become up to twice as long as if each kept to a fair share. Instructions that others send too are
   * there once. Infinite where the capacity is not known.
   */
  shareOf(stream: string): number {
    return this.#share(this.#sharing(this.#streams.get(stream)));
  }

  #share({ among, between, headTokens }: Sharing): number {
    const { capacity } = this;
    if (capacity === Number.POSITIVE_INFINITY) return capacity;
    // While prompts are worked on together, each holds whole blocks, its answer's too: one that finds none waits for another to end.
    const { blockTokens, atOnce } = this.engine;
    const unfilled = (Math.min(among, atOnce) * (blockTokens ?? 0)) / this.#ratio;
    const left = Math.max(0, MARGIN * capacity - headTokens - unfilled);
    return headTokens + Math.max(left / among, left - between);
  }

  #sharing(stream: Stream | undefined): Sharing {
    if (stream === undefined)
      return { among: this.#newcomers, tips: 0, between: Number.POSITIVE_INFINITY, headTokens: 0 };
    const { tokens, tips } = this.engine.uses.above(stream.at);
    const headTokens = this.#sharedHeadTokens(stream);
    return { among: stream.among ?? tips + 1, tips, between: Math.max(0, tokens - headTokens), headTokens };
  }

  /** Tokens of a stream's instructions where others have used them since its newest prompt; else 0. */
  #sharedHeadTokens({ head, at }: Stream): number {
    return (this.#heads.peek(head.digest)?.at ?? 0) > at ? head.tokens : 0;
  }

  /** Streams that have something in the cache, with one that comes new. */
  get #newcomers(): number {
    return this.engine.uses.within(this.capacity).tips + 1;
  }
}

/** Of so many leading tokens those after the instructions. */
function ownOf(tokens: number, head: SharedHead): number {
  return Math.max(0, tokens - head.tokens);
}

/** What all users' prompts leave of one user's in an engine's cache, where that keeps things by `own` rules besides. */
export function sharedResidency(cache: SharedCache, own: ResidencyModel = KEEPS_ALL): ResidencyModel {
  return {
    expire(index, now) {
      own.expire(index, now);
      const since = cache.heldSince();
      if (since !== null) index.dropUnusedSince(since - 1);
    },
    get limits(): ResidencyConfig {
      const { capacity: tokens } = cache;
      if (tokens === Number.POSITIVE_INFINITY) return own.limits ?? { kind: "all" };
      return own.limits?.kind === "ttl"
        ? { kind: "ttl-and-capacity", ttlMs: own.limits.ttlMs, tokens }
        : { kind: "capacity", tokens };
    },
  };
}
