import type { PendingPlace } from "../requests/environment.js";

/** A holder may have so many times as much as is free: alone three quarters of all, and whatever several have, something stays free. */
const TIMES_WHAT_IS_FREE = 3;

/**
 * The requests in work. One holder, a key or an address, may have as much as leaves something free for others: at most
 * {@link TIMES_WHAT_IS_FREE} times what is free (the dynamic thresholds of shared switch buffers: Choudhury and Hahne, 1998). With none
 * beside it that is three quarters of all; two that want everything get three sevenths each.
 */
export class PendingRequests {
  #count = 0;
  /** By holder, those that have any: bounded by the requests in work. */
  readonly #held = new Map<string, number>();

  constructor(private readonly max: number) {}

  get count(): number {
    return this.#count;
  }

  /** Takes a place, and gives what frees it; null where there is none. */
  enter(): { readonly place: PendingPlace; leave(): void } | null {
    if (this.#count >= this.max) return null;
    this.#count++;
    const holders: string[] = [];
    const share = (holder: string): boolean => {
      const own = this.#held.get(holder) ?? 0;
      // As it was before this one came.
      const free = this.max - (this.#count - 1);
      if (own >= TIMES_WHAT_IS_FREE * free) return false;
      this.#held.set(holder, own + 1);
      holders.push(holder);
      return true;
    };
    const leave = () => {
      this.#count--;
      for (const holder of holders) {
        const others = (this.#held.get(holder) ?? 1) - 1;
        if (others === 0) this.#held.delete(holder);
        else this.#held.set(holder, others);
      }
    };
    return { place: { share }, leave };
  }
}
