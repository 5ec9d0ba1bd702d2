import type { PrefixCache } from "../../../src/core/cache/simulated-cache.js";
import { chooseSlot } from "../../../src/core/index.js";

/** How many tokens two prompts share from the beginning. */
export function sharedTokens(a: readonly number[], b: readonly number[]): number {
  let shared = 0;
  while (shared < a.length && shared < b.length && a[shared] === b[shared]) shared++;
  return shared;
}

interface Slot {
  tokens: readonly number[];
  lastUsed: number;
}

/**
 * llama.cpp's slots: a prompt goes to one slot, hits the prefix that it shares with that slot's last prompt, but
 * never its own last token, and overwrites the rest. One request at a time is simulated, without its answer. A prefix in two
 * slots is held, and counted, twice.
 */
export class SlotCache implements PrefixCache {
  readonly #slots: readonly Slot[];
  #uses = 0;

  constructor(slots: number) {
    this.#slots = Array.from({ length: slots }, () => ({ tokens: [], lastUsed: 0 }));
  }

  get heldTokens(): number {
    return this.#slots.reduce((sum, { tokens }) => sum + tokens.length, 0);
  }

  serve(tokens: readonly number[]): number {
    const reusable = tokens.slice(0, -1);
    const free = this.#slots.map(({ tokens: held, lastUsed }) => {
      return { tokens: held.length, shared: sharedTokens(held, reusable), lastUsed };
    });
    const choice = chooseSlot(free) ?? 0;
    Object.assign(this.#slots[choice] as Slot, { tokens: [...tokens], lastUsed: ++this.#uses });
    return free[choice]?.shared ?? 0;
  }
}
