import type { TokenCounter, UserId } from "../../core/index.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import { AbandonedRequestError } from "../base/errors.js";
import type { CallerSignal } from "../base/linked-signal.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import type { ComposeHooks } from "../compose/compose-hooks.js";
import type { ComposeRequest } from "../compose/compose-request.js";
import type { WaitingLookup } from "../compose/memory-lookup.js";
import type { FoundAhead } from "../compose/prompt-composer.js";
import { BatchBlocks } from "./batch-blocks.js";
import { type FoundRequest, type PlannedFound, type PlanningParts, planFound } from "./batch-planning.js";

/** Most requests of one tenant and engine that wait; with so many the wait ends. */
export const MOST_WAITING = 512;

/** Composes the scheduled requests. */
export interface ScheduledComposer extends PlanningParts {
  readonly countTokens: TokenCounter;
  /** Throws `BusyUserError` where the user's queue, with so many more, is full. */
  rejectIfBusy(request: ComposeRequest, more: number): void;
  lookUp(request: ComposeRequest, signal?: CallerSignal): Promise<WaitingLookup>;
  /** @param found absent: the request is looked up in its user's queue, and refused where that is full */
  compose(
    request: ComposeRequest,
    signal: CallerSignal | undefined,
    hooks: ComposeHooks,
    found?: FoundAhead,
  ): Promise<ComposeAnswer>;
  /** Milliseconds. */
  now(): number;
  /** Called with what a request waited to be scheduled, in milliseconds. */
  onScheduled(waitedMs: number): void;
}

/** A request that waits, with its memories. */
interface WaitingRequest extends FoundRequest {
  readonly since: number;
  /** When it may wait no longer. */
  readonly until: number;
  readonly signal: CallerSignal | undefined;
  readonly hooks: ComposeHooks;
  /** Resolves the caller's promise. */
  readonly resolve: (answer: ComposeAnswer | Promise<ComposeAnswer>) => void;
  readonly stopListening: () => void;
}

/** Calls `fire` once after `ms` milliseconds, unless the returned function is called before. */
export type SetTimer = (ms: number, fire: () => void) => () => void;

const setRealTimer: SetTimer = (ms, fire) => {
  const timer = setTimeout(fire, ms);
  return () => clearTimeout(timer);
};

/** The requests that wait for one engine. */
interface Gathering {
  readonly waiting: Set<WaitingRequest>;
  stopTimer: () => void;
  /** When a request last came; the first after a pause does not wait. */
  lastAt: number;
  /** Groups that are not composed yet … */
  groups: number;
  /** … and when the last of them is. */
  before: Promise<void>;
}

/**
 * Orders concurrent online requests of one tenant, as a batch is ordered (`planFound`): single prompts that come within `waitMs` are
 * gathered, planned together, composed, and answered in the plan's order, for which an answer is held back by at most `waitMs`. A group is
 * planned when its first request has waited, or when {@link MOST_WAITING} wait. Groups follow each other, so a request is overtaken only by
 * requests of its group. Turns of conversations do not wait; nor does a request that comes alone: none waits, and none came within the
 * `waitMs` before it. Fails open: a group that cannot be planned is composed as it came.
 */
export class LiveSchedule {
  readonly #gatherings = new Map<EngineName | null, Gathering>();
  /** By user, the requests that are looked up or wait. */
  readonly #ahead = new Map<UserId, number>();
  /** Calls that have not settled. */
  readonly #open = new Set<Promise<ComposeAnswer>>();
  #isClosing = false;

  /**
   * @param waitMs longest wait of a request, in milliseconds, beside the search for its memories and planning; 0: nothing is scheduled
   * @param setTimer sets a timer of the clock that the composer's `now` reads
   */
  constructor(
    private readonly composer: ScheduledComposer,
    private readonly waitMs: number,
    private readonly setTimer: SetTimer = setRealTimer,
  ) {}

  /** Requests that wait. */
  get waiting(): number {
    let sum = 0;
    for (const { waiting } of this.#gatherings.values()) sum += waiting.size;
    return sum;
  }

  /** Composes a prompt, after a wait where others may share its memories. Rejects as the composer does. */
  compose(request: ComposeRequest, signal?: CallerSignal, hooks: ComposeHooks = {}): Promise<ComposeAnswer> {
    const mostMs = Math.min(this.waitMs, request.scheduleMs ?? this.waitMs);
    const isAlone = request.conversationId !== null || request.dryRun === true;
    if (mostMs <= 0 || isAlone || this.#isClosing) return this.composer.compose(request, signal, hooks);
    const composing = this.#schedule(request, mostMs, signal, hooks);
    this.#open.add(composing);
    const end = () => {
      this.#open.delete(composing);
    };
    composing.then(end, end);
    return composing;
  }

  /** Ends every wait, and resolves when every request that came is answered. Later ones do not wait. */
  async drain(): Promise<void> {
    this.#isClosing = true;
    for (const gathering of this.#gatherings.values()) this.#release(gathering);
    await Promise.allSettled(this.#open);
  }

  async #schedule(
    request: ComposeRequest,
    mostMs: number,
    signal: CallerSignal | undefined,
    hooks: ComposeHooks,
  ): Promise<ComposeAnswer> {
    const { userId } = request;
    this.composer.rejectIfBusy(request, this.#ahead.get(userId) ?? 0);
    if (signal?.aborted) throw new AbandonedRequestError();
    this.#count(userId, 1);
    const lookup = await this.composer.lookUp(request, signal).catch((error: unknown) => {
      this.#count(userId, -1);
      throw error;
    });
    const gathering = this.#gatheringFor(request.engine);
    const now = this.composer.now();
    const isAlone = gathering.waiting.size + gathering.groups === 0 && now - gathering.lastAt >= this.waitMs;
    gathering.lastAt = now;
    // Without a watch it was answered before: its answer is repeated.
    if (isAlone || this.#isClosing || lookup.watch === undefined) {
      this.#count(userId, -1);
      return this.composer.compose(request, signal, hooks, { lookup, front: [] });
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        gathering.waiting.delete(waiting);
        this.#count(userId, -1);
        reject(new AbandonedRequestError());
      };
      const stopListening = () => signal?.removeEventListener("abort", leave);
      const times = { since: now, until: now + mostMs };
      const waiting = { request, lookup, priority: 0, deadline: null, ...times, signal, hooks, resolve, stopListening };
      if (signal?.aborted) return leave();
      signal?.addEventListener("abort", leave, { once: true });
      gathering.waiting.add(waiting);
      if (gathering.waiting.size >= MOST_WAITING) this.#release(gathering);
      else this.#arm(gathering, now);
    });
  }

  /** Sets the timer for the request that may wait least. */
  #arm(gathering: Gathering, now: number): void {
    gathering.stopTimer();
    let until = Number.POSITIVE_INFINITY;
    for (const waiting of gathering.waiting) until = Math.min(until, waiting.until);
    gathering.stopTimer = this.setTimer(Math.max(0, until - now), () => this.#release(gathering));
  }

  /** Plans and composes all that wait, after the groups before them. */
  #release(gathering: Gathering): void {
    gathering.stopTimer();
    const group = [...gathering.waiting];
    gathering.waiting.clear();
    for (const { stopListening } of group) stopListening();
    if (group.length === 0) return;
    gathering.groups++;
    gathering.before = gathering.before.then(async () => {
      await this.#composeGroup(group);
      gathering.groups--;
    });
  }

  async #composeGroup(group: readonly WaitingRequest[]): Promise<void> {
    const plan = await this.#planned(group);
    let endHold = () => {};
    const timeUp = new Promise<void>((resolve) => {
      endHold = this.setTimer(this.waitMs, resolve);
    });
    let earlier: Promise<unknown> = Promise.resolve();
    for (const { found, order, shared } of plan) {
      const { request, lookup, since, signal, hooks, resolve } = found;
      this.#count(request.userId, -1);
      this.composer.onScheduled(Math.max(0, this.composer.now() - since));
      const answer = this.composer.compose(request, signal, hooks, { lookup, front: order.slice(0, shared) });
      // An answer waits for those that the engine is to get before it, but no longer than `waitMs`.
      const inTurn = Promise.race([earlier, timeUp]);
      resolve(answer.then((composed) => inTurn.then(() => composed)));
      earlier = Promise.allSettled([earlier, answer]);
    }
    void earlier.then(() => endHold());
  }

  async #planned(group: readonly WaitingRequest[]): Promise<readonly PlannedFound<WaitingRequest>[]> {
    try {
      return await planFound(group, new BatchBlocks(this.composer.countTokens), this.composer);
    } catch {
      return group.map((found) => ({ found, order: [], shared: 0 }));
    }
  }

  #gatheringFor(engine: EngineName | null): Gathering {
    const known = this.#gatherings.get(engine);
    if (known !== undefined) return known;
    const gathering: Gathering = {
      waiting: new Set(),
      stopTimer: () => {},
      lastAt: Number.NEGATIVE_INFINITY,
      groups: 0,
      before: Promise.resolve(),
    };
    this.#gatherings.set(engine, gathering);
    return gathering;
  }

  #count(userId: UserId, change: 1 | -1): void {
    const count = (this.#ahead.get(userId) ?? 0) + change;
    if (count === 0) this.#ahead.delete(userId);
    else this.#ahead.set(userId, count);
  }
}
