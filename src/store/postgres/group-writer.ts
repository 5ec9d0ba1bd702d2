import type { EventLoopUtilityFunction } from "node:perf_hooks";
import { setTimeout as setTimer } from "node:timers";
import { setImmediate, setTimeout } from "node:timers/promises";
import { StaleScopeError, StoreUnavailableError } from "../api/store.js";
import type { DigestSeal } from "../database/digest-seal.js";
import type { JournalUnit, WrittenUnit } from "../journal/journal-database.js";
import { type Connections, WRITERS } from "./connections.js";
import { commitGroup, type LockedUnit, lockedUnit, type UnitOutcome } from "./group-commit.js";
import { faultOfPostgres, isConnectionLost, isDuplicate, isUndoneForAnother } from "./postgres-faults.js";

/** Milliseconds after a group's end for which commits are waited for, at most. */
const GATHER_MS = 5;
/** From which share of the time since the group before the thread is taken for busy: whoever waits then keeps it from nothing. */
const BUSY = 0.75;

/**
 * Which size the next group of commits waits for. A transaction costs the server as much as several units of it, so where the thread that
 * plans is busy anyway, half of all that are under way wait for each other: while the server stores one half, the other one is planned.
 * With less to do every commit goes at once.
 */
export class Gathering {
  #wanted = 0;
  #timer: NodeJS.Timeout | null = null;
  #atEnd;

  /**
   * @param over called where fewer came than were waited for
   * @param utilization how busy the thread was
   */
  constructor(
    private readonly over: () => void,
    private readonly utilization: EventLoopUtilityFunction = performance.eventLoopUtilization,
  ) {
    this.#atEnd = utilization();
  }

  /** A group ended. Those who were in it may come again; `waiting` came meanwhile. */
  begin(ended: number, waiting: number): void {
    this.end();
    const before = this.#atEnd;
    this.#atEnd = this.utilization();
    if (waiting >= ended || this.utilization(this.#atEnd, before).utilization < BUSY) return;
    this.#wanted = (ended + waiting) / 2;
    this.#timer = setTimer(() => {
      this.end();
      this.over();
    }, GATHER_MS);
  }

  /** Whether so many still wait for others; where they are enough, nobody does until the next group has ended. */
  isOn(waiting: number): boolean {
    if (waiting >= this.#wanted) this.end();
    return waiting < this.#wanted;
  }

  /** Nobody waits any longer. */
  end(): void {
    this.#wanted = 0;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** Most units per transaction: bounds the wait of the first. */
const MOST_UNITS = 32;
/** Milliseconds for which the next group waits for the one under way: one after the other they are larger, and fewer. */
const PATIENCE_MS = 20;
/** How often a transaction is run that the server undid for another's sake. */
const MOST_ATTEMPTS = 4;
/** Milliseconds for which commits wait for a server that went away, before they and all later ones fail at once. */
const AWAY_MS = 2_000;
/** The same for commits whose outcome is not known: it is found out, if the server comes back. */
const UNCERTAIN_MS = 15_000;
/** Milliseconds between attempts: the first, doubled after each, up to the longest. */
const FIRST_WAIT_MS = 10;
const LONGEST_WAIT_MS = 500;

/** Units that are applied all or not at all. */
interface Job {
  readonly units: readonly LockedUnit[];
  readonly resolve: (written: readonly WrittenUnit[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: the units that came while others were under way share a transaction. Another group starts beside one that takes long, as it
 * may wait for a lock; one scope's units are in one of them at most, so they are applied in order.
 */
export class GroupWriter {
  readonly #waiting: Job[] = [];
  readonly #scopes = new Set<string>();
  readonly #settling = new Set<Promise<void>>();
  #isScheduled = false;
  /** Runs while the newest group is waited for. */
  #patience: NodeJS.Timeout | null = null;
  /** When the server was first found away; null: it answers. */
  #awaySince: number | null = null;

  readonly #gathering = new Gathering(() => this.#schedule());

  constructor(
    private readonly connections: Connections,
    private readonly digests: DigestSeal,
  ) {}

  /** Applies units, all or none. Rejects as `JournalDatabase.write` does. */
  write(units: readonly JournalUnit[]): Promise<readonly WrittenUnit[]> {
    const locked = units.map((unit) => lockedUnit(unit, this.digests));
    const outcome = new Promise<readonly WrittenUnit[]>((resolve, reject) => {
      this.#waiting.push({ units: locked, resolve, reject });
    });
    this.#schedule();
    return outcome;
  }

  /** Resolves when everything handed over so far is stored, or has failed. */
  async idle(): Promise<void> {
    while (this.#waiting.length > 0 || this.#settling.size > 0) {
      this.#gathering.end();
      this.#schedule();
      await (this.#settling.size > 0 ? Promise.race(this.#settling) : setImmediate());
    }
  }

  /** Waits for the other commits of this iteration of the event loop, and of later ones where the thread is busy. */
  #schedule(): void {
    if (this.#isScheduled || !this.#mayStart()) return;
    if (this.#settling.size === 0 && this.#gathering.isOn(this.#waiting.length)) return;
    this.#isScheduled = true;
    void setImmediate().then(() => {
      this.#isScheduled = false;
      this.#start();
    });
  }

  #mayStart(): boolean {
    return this.#settling.size === 0 || (this.#patience === null && this.#settling.size < WRITERS);
  }

  #endPatience(): void {
    if (this.#patience !== null) clearTimeout(this.#patience);
    this.#patience = null;
  }

  #start(): void {
    while (this.#mayStart()) {
      const group = this.#takeGroup();
      if (group.length === 0) return;
      this.#endPatience();
      this.#patience = setTimer(() => {
        this.#patience = null;
        this.#start();
      }, PATIENCE_MS);
      const settling: Promise<void> = this.#commit(group).finally(() => {
        this.#settling.delete(settling);
        if (this.#settling.size === 0) {
          this.#endPatience();
          this.#gathering.begin(group.length, this.#waiting.length);
        }
        for (const { units } of group) for (const { lock } of units) this.#scopes.delete(lock);
        this.#schedule();
      });
      this.#settling.add(settling);
    }
  }

  /**
   * Takes the oldest waiting jobs none of whose scopes is under way, or waiting in front of it. Jobs of several units go alone. A deletion
   * shares no transaction with its user's other commits: those would not see that it came before them.
   */
  #takeGroup(): Job[] {
    const group: Job[] = [];
    const blocked = new Set(this.#scopes);
    const buckets = new Set<number>();
    const deleted = new Set<number>();
    const isApart = ({ unit, bucket }: LockedUnit) =>
      deleted.has(bucket) || (unit.deletion !== undefined && buckets.has(bucket));
    let units = 0;
    for (let at = 0; at < this.#waiting.length && units < MOST_UNITS; ) {
      const job = this.#waiting[at] as Job;
      const isFree = job.units.every(({ lock }) => !blocked.has(lock));
      const fits = group.length === 0 || (job.units.length === 1 && !job.units.some(isApart));
      for (const { lock } of job.units) blocked.add(lock);
      if (!isFree || !fits) {
        at++;
        continue;
      }
      this.#waiting.splice(at, 1);
      group.push(job);
      units += job.units.length;
      for (const { lock, bucket, unit } of job.units) {
        this.#scopes.add(lock);
        buckets.add(bucket);
        if (unit.deletion !== undefined) deleted.add(bucket);
      }
      if (job.units.length > 1) break;
    }
    return group;
  }

  /** Settles every job of a group. Never rejects. */
  async #commit(jobs: readonly Job[]): Promise<void> {
    try {
      const outcomes = await this.#attempt(jobs);
      for (const job of jobs) settle(job, outcomes.splice(0, job.units.length));
    } catch (error) {
      if (jobs.length > 1 && mayBeOnes(error)) for (const job of jobs) await this.#commit([job]);
      else
        for (const job of jobs) job.reject(isDuplicate(error) ? staleError(error) : this.connections.observed(error));
    }
  }

  async #attempt(jobs: readonly Job[]): Promise<UnitOutcome[]> {
    const units = jobs.flatMap((job) => job.units);
    const isTogether = units.length > jobs.length;
    const startedAt = performance.now();
    for (let attempt = 1, wait = FIRST_WAIT_MS; ; attempt++, wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
      let isSent = false;
      try {
        const outcomes = await this.connections.write((client) =>
          commitGroup(client, units, isTogether, () => {
            isSent = true;
          }),
        );
        this.#awaySince = null;
        return outcomes;
      } catch (error) {
        if (isConnectionLost(error)) {
          if (isSent) for (const unit of units) unit.isUncertain = true;
          if (!this.#isWaitedFor(startedAt, units)) throw error;
        } else if (!isUndoneForAnother(error) || attempt >= MOST_ATTEMPTS) throw error;
      }
      // Instances that lost one server do not come back all at once.
      await setTimeout(wait * (0.5 + Math.random()));
    }
  }

  /** Whether a server that went away is still waited for. */
  #isWaitedFor(startedAt: number, units: readonly LockedUnit[]): boolean {
    const now = performance.now();
    this.#awaySince ??= now;
    if (units.some(({ isUncertain }) => isUncertain)) return now - startedAt < UNCERTAIN_MS;
    return now - this.#awaySince < AWAY_MS;
  }
}

/** Whether an error may be one unit's, so that the others of its group are stored without it. */
function mayBeOnes(error: unknown): boolean {
  const fault = faultOfPostgres(error);
  return (fault === null && !(error instanceof StoreUnavailableError && error.fault !== "damaged")) || fault === "busy";
}

function settle({ resolve, reject }: Job, outcomes: readonly UnitOutcome[]): void {
  const written = outcomes.flatMap((outcome) => (outcome === "stale" ? [] : [outcome]));
  if (written.length === outcomes.length) resolve(written);
  else reject(staleError());
}

function staleError(cause?: unknown): StaleScopeError {
  return new StaleScopeError("the scope was changed by another process", cause === undefined ? {} : { cause });
}
