import type { RequestId, Scope } from "../../core/index.js";
import type { Store } from "../../store/api/store.js";

/** How many of a scope's last requests are looked at; as many as a store looks at. */
const MOST_REQUESTS = 32;

/** One request that was composed since the scope was loaded. */
interface ComposedRequest {
  readonly id: RequestId;
  /** Milliseconds since the epoch. */
  readonly at: number;
  isOpen: boolean;
}

/**
 * The requests of a scope in memory that its engine may still be computing: `Store.underWaySince`, of which the store is asked only for what
 * was composed before the scope was loaded. Valid for as long as the scope's version is the stored one: any other process's commit loads the
 * scope anew.
 */
export class OpenRequests {
  /** Oldest first. */
  #composed: ComposedRequest[] = [];
  /** When the oldest open request from before the first of those was composed; null: none. Undefined: to be read. */
  #before: number | null | undefined;

  /** @param loadedAt when the newest request was composed that was stored before the scope was loaded; 0: none was */
  constructor(
    private readonly store: Pick<Store, "underWaySince">,
    private readonly scope: Scope,
    private readonly loadedAt: number,
  ) {}

  /** A request was composed and stored. */
  composed(id: RequestId, at: number): void {
    this.#composed.push({ id, at, isOpen: true });
    if (this.#composed.length > MOST_REQUESTS) this.#composed.shift();
  }

  /** Requests were reported, evicted or withdrawn. */
  ended(ids: readonly RequestId[]): void {
    for (const id of ids) {
      const known = this.#composed.find((request) => request.id === id);
      if (known !== undefined) known.isOpen = false;
      // Another one may be the oldest now.
      else this.#before = undefined;
    }
  }

  /** See `Store.underWaySince`. */
  async since(since: number): Promise<number | null> {
    const later = this.#composed.filter(({ at }) => at > since);
    if (later.length >= MOST_REQUESTS) return since;
    const own = later.find(({ isOpen }) => isOpen)?.at ?? null;
    // What is older than the first of them is before `since`, too.
    if (later.length < this.#composed.length) return own;
    if (this.loadedAt <= since) this.#before = null;
    else if (this.#before === undefined || (this.#before !== null && this.#before <= since)) {
      const oldest = await this.store.underWaySince(this.scope, since);
      this.#before = oldest === own ? null : oldest;
    }
    return this.#before ?? own;
  }
}
