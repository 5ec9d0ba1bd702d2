/** A free slot, from a request's point of view. */
export interface FreeSlot {
  /** The cache salt of its content; undefined for none, or for an empty slot. */
  readonly salt: string | undefined;
  /** Tokens in the slot. */
  readonly tokens: number;
  /** How many of them are a prefix of the request's prompt. */
  readonly shared: number;
  /** Ascends with every use; 0: never used. */
  readonly lastUsed: number;
}

/**
 * A match of at most this share of a slot's tokens does not justify overwriting the rest: the LRU slot is taken. As in llama.cpp's server.
 */
const MIN_SHARE = 0.1;

/**
 * Chooses the slot for a prompt: the one with the longest shared prefix, if that is more than a tenth of the slot's tokens, else the least
 * recently used one. Slots with another salt never match. Returns the slot's index; undefined if no slot is free.
 */
export function chooseSlot(free: readonly FreeSlot[], salt: string | undefined): number | undefined {
  let best: number | undefined;
  for (const [index, slot] of free.entries()) {
    if (slot.salt !== salt || slot.shared <= slot.tokens * MIN_SHARE) continue;
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
