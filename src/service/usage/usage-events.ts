import { keptIn } from "../../core/text/collections.js";
import type { FollowedUsage, UsageChanges, UsageLog } from "../../store/api/usage-log.js";
import type { UsageRecorder } from "./usage-recorder.js";

/** Milliseconds between two messages to a listener: sooner than anybody waits for, seldom enough for any number of prompts. */
const EVERY_MS = 250;
/** The same while the log cannot be read. */
const FAULT_MS = 1_000;
/** Milliseconds without an answer of the log after which nothing is caught up on: it would be too much to read at once. */
const GAP_MS = 60_000;
/** Listeners of one tenant. */
export const MAX_LISTENERS = 32;
/** Most prompts of one message. */
export const MAX_LIVE_PROMPTS = 50;

/** Who follows a tenant's prompts and notes. */
export interface UsageListener {
  /** The same object for all who follow the same. */
  readonly tell: (changes: UsageChanges) => void;
  /** Called where what comes next may not continue what was sent. */
  readonly end: () => void;
}

/** What events need. */
export interface UsageEventParts {
  readonly log: UsageLog;
  readonly recorder: Pick<UsageRecorder, "flush" | "waiting">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onFault: (error: unknown) => void;
}

/** Those who follow the same. */
interface Following {
  readonly followed: FollowedUsage;
  readonly listeners: Set<UsageListener>;
}

/**
 * Sends listeners what is recorded, by any process, four times a second at most, where very many come once: the newest prompts that fit
 * their filter, and how many others there were. What is sent is read from the log, once for all who follow the same, and only while somebody does.
 */
export class UsageEvents {
  readonly #followings = new Map<string, Following>();
  /** Null: nobody listens, or has heard yet from when on. */
  #cursor: number | null = null;
  #timer: NodeJS.Timeout | null = null;
  /** The end of all turns; never rejects. */
  #turns: Promise<void> = Promise.resolve();
  #answeredAt = 0;
  #isFaulty = false;

  constructor(private readonly parts: UsageEventParts) {}

  /**
   * Follows what is recorded from when this resolves, at the latest; null where too many of the tenant listen. The function that it gives
   * ends it. Rejects with the log's faults.
   */
  async listen(followed: FollowedUsage, listener: UsageListener): Promise<(() => void) | null> {
    const { tenant } = followed.filter;
    const ofTenant = [...this.#followings.values()].filter((one) => one.followed.filter.tenant === tenant);
    if (ofTenant.reduce((sum, { listeners }) => sum + listeners.size, 0) >= MAX_LISTENERS) return null;
    const stop = this.#add(followed, listener);
    // After the turn under way, which sends it nothing and moves the cursor on.
    const begun = this.#turns.then(() => this.#begin());
    this.#turns = begun.catch(() => {});
    try {
      await begun;
      return stop;
    } catch (error) {
      stop();
      throw error;
    }
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#followings.clear();
    this.#cursor = null;
  }

  #add(followed: FollowedUsage, listener: UsageListener): () => void {
    const named = Object.entries(followed.filter).filter(([, value]) => value !== undefined);
    const key = JSON.stringify([followed.limit, named.sort()]);
    const following = keptIn(this.#followings, key, () => ({ followed, listeners: new Set() }));
    following.listeners.add(listener);
    return () => {
      following.listeners.delete(listener);
      if (following.listeners.size > 0 || this.#followings.get(key) !== following) return;
      this.#followings.delete(key);
      if (this.#followings.size === 0) this.stop();
    };
  }

  async #begin(): Promise<void> {
    if (this.#cursor !== null) return;
    const { cursor } = await this.parts.log.changes(null, []);
    this.#moveTo(cursor);
  }

  #moveTo(cursor: number): void {
    this.#answeredAt = this.parts.now();
    if (this.#followings.size === 0) return;
    this.#cursor = cursor;
    this.#setTimer(EVERY_MS);
  }

  #setTimer(ms: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#turns = this.#turns.then(() => this.#take());
    }, ms).unref();
  }

  /** Sends what came since the last turn. */
  async #take(): Promise<void> {
    const since = this.#cursor;
    if (since === null) return;
    const followings = [...this.#followings.values()];
    const { log, recorder, now, onFault } = this.parts;
    try {
      // More than one message shows wait for the batch that is due: four batches cost more than one of the same prompts.
      if (recorder.waiting <= MAX_LIVE_PROMPTS) await recorder.flush();
      const { cursor, changes } = await log.changes(
        since,
        followings.map(({ followed }) => followed),
      );
      this.#isFaulty = false;
      if (now() - this.#answeredAt > GAP_MS) {
        this.#endAll();
        return;
      }
      this.#moveTo(cursor);
      for (const [at, { listeners }] of followings.entries()) {
        const told = changes[at];
        if (told === undefined || isNothing(told)) continue;
        for (const { tell } of [...listeners]) tell(told);
      }
    } catch (error) {
      // Nobody is left to miss it: the service may be closing its log.
      if (this.#followings.size === 0) return;
      // Once, not with every turn.
      if (!this.#isFaulty) onFault(error);
      this.#isFaulty = true;
      this.#setTimer(FAULT_MS);
    }
  }

  #endAll(): void {
    const listeners = [...this.#followings.values()].flatMap((one) => [...one.listeners]);
    this.stop();
    for (const { end } of listeners) end();
  }
}

function isNothing({ rows, leftOut, notes }: UsageChanges): boolean {
  return rows.length === 0 && leftOut === 0 && notes.length === 0;
}
