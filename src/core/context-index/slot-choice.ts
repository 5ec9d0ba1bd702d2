/** A slot that is free, as a request sees it. */
export interface FreeSlot {
  /** The cache salt of what it holds; undefined where that had none, and where it holds nothing. */
  readonly salt: string | undefined;
  /** Tokens that it holds. */
  readonly tokens: number;
  /** How many of them, from the first on, the request's prompt begins with. */
  readonly shared: number;
  /** Grows with every use; 0: never used. */
  readonly lastUsed: number;
}

/** A match up to this share of what a slot holds is no reason to give the rest up: another slot is older. As in llama.cpp's server. */
const LEAST_SHARE = 0.1;

/**
 * Chooses the slot for a prompt: the one that shares most of the prompt's beginning, if that is over a tenth of what it holds, else the
 * least recently used one. Slots of another salt are never a match. Returns its index, or undefined where no slot is free.
 */
export function chooseSlot(free: readonly FreeSlot[], salt: string | undefined): number | undefined {
  let best: number | undefined;
  for (const [index, slot] of free.entries()) {
    if (slot.salt !== salt || slot.shared <= slot.tokens * LEAST_SHARE) continue;
    const other = best === undefined ? undefined : free[best];
    if (other === undefined || before(-slot.shared, slot, -other.shared, other)) best = index;
  }
  if (best !== undefined) return best;
  for (const [index, slot] of free.entries()) {
    const other = best === undefined ? undefined : free[best];
    if (other === undefined || slot.lastUsed < other.lastUsed) best = index;
  }
  return best;
}

function before(rank: number, slot: FreeSlot, otherRank: number, other: FreeSlot): boolean {
  return rank === otherRank ? slot.lastUsed < other.lastUsed : rank < otherRank;
}
