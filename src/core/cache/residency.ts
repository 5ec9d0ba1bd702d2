import type { Digest } from "../text/ids.js";
import {
  type ContextIndex,
  type Foreseen,
  KEEPS_ALL,
  type ResidencyConfig,
  type ResidencyModel,
  type SectionTokens,
} from "./context-index.js";
import type { HeldEnd } from "./prefix-forest.js";

/** Throws a RangeError for a limit that is not above 0. */
export function residencyModel(config: ResidencyConfig): ResidencyModel {
  switch (config.kind) {
    case "all":
      return KEEPS_ALL;
    case "ttl":
      return timeToLive(config.ttlMs);
    case "capacity":
      return tokenCapacity(config.tokens);
    case "slots":
      return promptSlots(config.slots);
    case "ttl-and-capacity": {
      const models = [timeToLive(config.ttlMs), tokenCapacity(config.tokens)];
      return {
        limits: config,
        expire: (index, now) => {
          for (const model of models) model.expire(index, now);
        },
      };
    }
  }
}

function timeToLive(ttlMs: number): ResidencyModel {
  requirePositive("ttlMs", ttlMs);
  return { limits: { kind: "ttl", ttlMs }, expire: (index, now) => index.dropUnusedSince(now - ttlMs) };
}

function tokenCapacity(tokens: number): ResidencyModel {
  requirePositive("tokens", tokens);
  return { limits: { kind: "capacity", tokens }, expire: (index) => index.dropToFit(tokens) };
}

function requirePositive(name: string, limit: number): void {
  if (!(limit > 0)) throw new RangeError(`${name} is ${limit}, not above 0`);
}

/**
 * An engine that keeps the last prompt of each of its slots and extends a prompt from one of them only (llama.cpp). A prompt takes the slot
 * that {@link chooseSlot} chooses, hits the prefix it shares with that slot's prompt, and overwrites the rest. So the index never holds
 * more prompts than there are slots.
 *
 * Assumes that the slots serve this scope alone, one request at a time; evictions by other scopes show in reports. Unknown are the tokens
 * of a prompt's answer, and of the question of a prompt without blocks. They only matter for the threshold of {@link chooseSlot}: a prompt
 * that shares close to a tenth of a slot may take another slot than expected.
 *
 * Throws a RangeError unless `slots` is a whole number above 0.
 */
export function promptSlots(slots: number): ResidencyModel {
  if (!Number.isInteger(slots) || slots < 1) throw new RangeError(`slots is ${slots}, not a whole number above 0`);
  return {
    limits: { kind: "slots", slots },
    // More prompts exist only if the index was filled under another model: evicts the least recently used.
    expire: (index) => {
      const ends = [...index.ends()];
      let over = ends.reduce((prompts, { live }) => prompts + live, 0) - slots;
      for (const { id, live } of ends) {
        for (let left = live; left > 0 && over > 0; left--, over--) index.evict(id);
      }
    },
    foresee: (index, sections) => foresee(index, slots, sections),
  };
}

function foresee(index: ContextIndex, slots: number, sections: readonly SectionTokens[]): Foreseen {
  const at = new Map(sections.map(({ anchor }, n) => [anchor, n]));
  const ends = [...index.ends()];
  const shares = ends.map((end) => sharedWith(index, end, sections, at));
  const held: FreeSlot[] = ends.map(({ tokens, lastUsed }, n) => {
    return { tokens, lastUsed, shared: shares[n]?.tokens ?? 0 };
  });
  const isFull = ends.reduce((prompts, { live }) => prompts + live, 0) >= slots;
  const chosen = chooseSlot(isFull ? held : [...held, UNUSED]) ?? ends.length;
  const share = shares[chosen] ?? NOTHING_SHARED;
  return { cachedTokens: share.tokens, cachedBlocks: share.lastBlocks, replaces: ends[chosen]?.id ?? null };
}

const UNUSED: FreeSlot = { tokens: 0, shared: 0, lastUsed: 0 };

/** What a prompt shares with a cached one. */
interface Share {
  readonly tokens: number;
  /** Leading blocks of the prompt's last section. */
  readonly lastBlocks: number;
}

const NOTHING_SHARED: Share = { tokens: 0, lastBlocks: 0 };

/** Two prompts share everything up to the last anchor that both have, and from there the blocks that are equal. */
function sharedWith(
  index: ContextIndex,
  { id, lastUsed }: HeldEnd,
  sections: readonly SectionTokens[],
  at: ReadonlyMap<Digest, number>,
): Share {
  for (const { anchor, labels } of index.wayTo(id)) {
    const n = at.get(anchor);
    const section = n === undefined ? undefined : sections[n];
    if (section === undefined) continue;
    // Turn ids are the index's logical clock: the cached prompt is the one replayed here.
    if (section.sentBy === lastUsed) return { tokens: section.end, lastBlocks: 0 };
    const same = section.labels.findIndex((label, place) => labels[place] !== label);
    const blocks = same < 0 ? section.labels.length : same;
    const tokens = section.upTo(blocks, same >= 0 && blocks < labels.length);
    return { tokens, lastBlocks: n === sections.length - 1 ? blocks : 0 };
  }
  return NOTHING_SHARED;
}

/** A free slot, from a request's point of view. */
export interface FreeSlot {
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
 * recently used one. Returns the slot's index; undefined if no slot is free.
 */
export function chooseSlot(free: readonly FreeSlot[]): number | undefined {
  let best: number | undefined;
  for (const [index, slot] of free.entries()) {
    if (slot.shared <= slot.tokens * MIN_SHARE) continue;
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
