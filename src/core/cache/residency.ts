import type { Digest, NodeId, TurnId } from "../text/ids.js";
import type { ContextIndex, HeldEnd, PassedAnchor } from "./context-index.js";

/** How long, and how much of one user, an engine's prefix cache is assumed to keep. */
export type ResidencyConfig =
  /** Everything until an eviction names it or an engine's report misses it. */
  | { readonly kind: "all" }
  /** Each prefix for so many milliseconds after its last use, as hosted engines do. */
  | { readonly kind: "ttl"; readonly ttlMs: number }
  /** So many tokens with LRU eviction, as vLLM and SGLang do (RAGBoost's eviction by tokens). */
  | { readonly kind: "capacity"; readonly tokens: number }
  | { readonly kind: "ttl-and-capacity"; readonly ttlMs: number; readonly tokens: number }
  /** The last prompt of each of so many slots, as llama.cpp does: a prompt replaces another one. */
  | { readonly kind: "slots"; readonly slots: number };

/**
 * What an engine is assumed to have evicted without saying so. Called before each request is planned. Named evictions and engines' reports
 * correct the index under any model. No model restores what left: only a served request adds a prefix. Every model passes
 * `test/core/cache/residency.suite.ts`.
 */
export interface ResidencyModel {
  /** Removes from the index what should have left the engine's cache by `now`, in milliseconds since the epoch. */
  expire(index: ContextIndex, now: number): void;
  /**
   * For engines with several separate caches, of which a prompt uses one: what a prompt hits in it, and which prompt it replaces. Called
   * once the prompt's blocks are ordered, before it is added; `sections` are the prompt's own, first to last. Absent: everything in the
   * index hits.
   */
  foresee?(index: ContextIndex, sections: readonly SectionTokens[]): Foreseen;
  /** The model's limits, for explanations; absent: not stated. */
  readonly limits?: ResidencyConfig;
}

/** A section of a prompt that is about to be served, with its position in tokens. */
export interface SectionTokens extends PassedAnchor {
  /** Tokens of the prompt before the section's blocks, the opening included … */
  readonly before: number;
  /** … from the end of its blocks to the end of its turn … */
  readonly behind: number;
  /** … and to the end of its turn. */
  readonly end: number;
  /** The turn that sent the prompt byte for byte up to here; null for none. */
  readonly sentBy: TurnId | null;
  /**
   * Tokens of the prompt up to the end of the section's first `blocks` blocks; for 0: up to the section, or its opening.
   *
   * @param goesOn whether another block follows, before which every section has the same opening
   */
  upTo(blocks: number, goesOn: boolean): number;
}

/** What a prompt is expected to hit. */
export interface Foreseen {
  readonly cachedTokens: number;
  /** How many leading blocks of its last section are among them. */
  readonly cachedBlocks: number;
  /** The end of the prompt that this one replaces; null for none. */
  readonly replaces: NodeId | null;
}

/** How much of a conversation's earlier turns the index holds. */
export interface KnownTurns {
  /** How many of the prompt's sections belong to a prompt that is held whole … */
  readonly sections: number;
  /** … the node where its blocks end … */
  readonly end: NodeId | null;
  /** … and the tokens of the held prefix. */
  readonly tokens: number;
}

/** The result of serving a prompt. */
export interface Served extends Foreseen {
  /** Node of the index where the prompt's blocks end. */
  readonly leaf: NodeId;
}

/**
 * Adds a prompt to the index at logical time `clock` and `at` in milliseconds since the epoch, and returns what of it should hit.
 *
 * @param sections the prompt's sections, first to last: those of earlier turns, then its own
 */
export function serve(
  index: ContextIndex,
  model: Pick<ResidencyModel, "foresee">,
  sections: readonly SectionTokens[],
  known: KnownTurns,
  clock: number,
  at: number,
): Served {
  const foreseen = heldTokens(index, model, sections, known);
  const insert = ({ anchor, labels, before, behind }: SectionTokens, follows: NodeId | null) =>
    index.insert(anchor, labels, clock, { at, follows, tokensBefore: before, tokensBehind: behind });
  // A slot model compares whole prompts, so the earlier turns have to be in the index too. Restated turns are in no other prompt.
  const passed: NodeId[] = [];
  for (const section of sections.slice(known.sections, -1)) passed.push(insert(section, passed.at(-1) ?? known.end));
  const leaf = insert(sections.at(-1) as SectionTokens, passed.at(-1) ?? known.end);
  for (const turn of passed) index.evict(turn);
  // Only now: the prefix that both share keeps its nodes.
  if (foreseen.replaces !== null) index.evict(foreseen.replaces);
  return { ...foreseen, leaf };
}

/** What a prompt with these sections should hit: without {@link ResidencyModel.foresee}, everything that the index holds of it. */
export function heldTokens(
  index: ContextIndex,
  model: Pick<ResidencyModel, "foresee">,
  sections: readonly SectionTokens[],
  known: KnownTurns,
): Foreseen {
  if (model.foresee !== undefined) return model.foresee(index, sections);
  const last = sections.at(-1);
  if (last !== undefined && index.hasAnchor(last.anchor)) {
    const cachedBlocks = index.heldBlocks(last.anchor, last.labels);
    return { cachedTokens: last.upTo(cachedBlocks, false), cachedBlocks, replaces: null };
  }
  // Of blocks without labels others may have shared what is before them.
  const before = sections.at(-2);
  const isShared = before !== undefined && before.labels.length === 0 && index.hasAnchor(before.anchor);
  const cachedTokens = Math.max(known.tokens, isShared ? before.upTo(0, false) : 0);
  return { cachedTokens, cachedBlocks: 0, replaces: null };
}

/** Nothing leaves by itself. */
export const KEEPS_ALL: ResidencyModel = { expire: () => {}, limits: { kind: "all" } };

/** Throws a RangeError for a limit that is not above 0. */
export function residencyModel(config: ResidencyConfig): ResidencyModel {
  if (config.kind === "all") return KEEPS_ALL;
  if (config.kind === "slots") return promptSlots(config.slots);
  const ttlMs = "ttlMs" in config ? config.ttlMs : null;
  const tokens = "tokens" in config ? config.tokens : null;
  for (const [name, limit] of Object.entries({ ttlMs, tokens }))
    if (limit !== null && !(limit > 0)) throw new RangeError(`${name} is ${limit}, not above 0`);
  return {
    limits: config,
    expire: (index, now) => {
      if (ttlMs !== null) index.dropUnusedSince(now - ttlMs);
      if (tokens !== null) index.dropToFit(tokens);
    },
  };
}

/** Whether a prefix last used at `usedAt` is within the model's TTL; true under a model without one. Times in milliseconds. */
export function isWithinTtl({ limits }: ResidencyModel, usedAt: number, now: number): boolean {
  return limits === undefined || !("ttlMs" in limits) || now - usedAt < limits.ttlMs;
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
    foresee: (index, sections) => {
      const byAnchor = new Map(sections.map((section) => [section.anchor, section]));
      const held = [...index.ends()].map((end) => ({ ...end, ...sharedWith(index, end, byAnchor, sections.at(-1)) }));
      const isFull = held.reduce((prompts, { live }) => prompts + live, 0) >= slots;
      const chosen = held[chooseSlot(isFull ? held : [...held, UNUSED]) ?? held.length];
      const { shared: cachedTokens, lastBlocks: cachedBlocks } = chosen ?? NOTHING_SHARED;
      return { cachedTokens, cachedBlocks, replaces: chosen?.id ?? null };
    },
  };
}

/** What a prompt shares with a cached one. */
interface Share {
  /** In tokens. */
  readonly shared: number;
  /** Leading blocks of the prompt's last section. */
  readonly lastBlocks: number;
}

const NOTHING_SHARED: Share = { shared: 0, lastBlocks: 0 };

/** Two prompts share everything up to the last anchor that both have, and from there the blocks that are equal. */
function sharedWith(
  index: ContextIndex,
  { id, lastUsed }: HeldEnd,
  byAnchor: ReadonlyMap<Digest, SectionTokens>,
  last: SectionTokens | undefined,
): Share {
  for (const { anchor, labels } of index.wayTo(id)) {
    const section = byAnchor.get(anchor);
    if (section === undefined) continue;
    // Turn ids are the index's logical clock: the cached prompt is the one replayed here.
    if (section.sentBy === lastUsed) return { shared: section.end, lastBlocks: 0 };
    const same = section.labels.findIndex((label, place) => labels[place] !== label);
    const blocks = same < 0 ? section.labels.length : same;
    const shared = section.upTo(blocks, same >= 0 && blocks < labels.length);
    return { shared, lastBlocks: section === last ? blocks : 0 };
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

const UNUSED: FreeSlot = { tokens: 0, shared: 0, lastUsed: 0 };

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
    const other = best === undefined ? undefined : free[best];
    if (other === undefined || isBetter(slot, other)) best = index;
  }
  return best;
}

function isBetter(slot: FreeSlot, other: FreeSlot): boolean {
  const [reused, otherReused] = [reusedTokens(slot), reusedTokens(other)];
  return reused === otherReused ? slot.lastUsed < other.lastUsed : reused > otherReused;
}

function reusedTokens({ tokens, shared }: FreeSlot): number {
  return shared > tokens * MIN_SHARE ? shared : 0;
}
