import type { Digest, NodeId, TurnId } from "../text/ids.js";
import type { ContextIndex, HeldEnd, PassedAnchor } from "./context-index.js";

/** What an engine keeps besides its capacity, which `PredictedCache` has. */
export type ResidencyConfig =
  /** Everything until an eviction names it or a report misses it. */
  | { readonly kind: "all" }
  /** Each prefix until `ttlMs` after its last use, as hosted engines do. */
  | { readonly kind: "ttl"; readonly ttlMs: number }
  /** The last prompt of each slot, as llama.cpp does. */
  | { readonly kind: "slots"; readonly slots: number };

/** What an engine is assumed to have evicted silently. Every model passes `test/core/cache/residency.suite.ts`. */
export interface ResidencyModel {
  /** Called before each request is planned. `now` is in milliseconds since the epoch. */
  expire(index: ContextIndex, now: number): void;
  /** For engines with several caches: what a prompt hits in its own, and which prompt it replaces. Absent: everything in the index hits. */
  foresee?(index: ContextIndex, sections: readonly SectionTokens[]): Foreseen;
  /** Milliseconds from a prefix's last use to its eviction; null: no limit. */
  readonly ttlMs: number | null;
}

export interface SectionTokens extends PassedAnchor {
  /** Before its blocks, opening included. */
  readonly before: number;
  /** After its blocks, to the end of its turn. */
  readonly behind: number;
  readonly end: number;
  /** The turn that sent the same bytes up to here. */
  readonly sentBy: TurnId | null;
  /** Tokens up to the end of the first `blocks` blocks; `goesOn`: whether another block follows. */
  upTo(blocks: number, goesOn: boolean): number;
}

export interface Foreseen {
  readonly cachedTokens: number;
  readonly cachedBlocks: number;
  /** The end of the prompt that this one replaces. */
  readonly replaces: NodeId | null;
}

export interface KnownTurns {
  /** Tokens of the prefix that earlier prompts share. */
  readonly cachedTokens: number;
  /** Node of the index where the blocks of that prefix end. */
  readonly cachedEnd: NodeId | null;
  /** How many sections that prefix contains. */
  readonly cachedSections: number;
}

/** Adds a prompt at logical time `clock` and `at` (milliseconds since the epoch). `sections`: those of earlier turns, then the new one. */
export function serve(
  index: ContextIndex,
  model: Pick<ResidencyModel, "foresee">,
  sections: readonly SectionTokens[],
  known: KnownTurns,
  clock: number,
  at: number,
): Foreseen & { readonly leaf: NodeId } {
  const { cachedTokens, cachedBlocks, replaces } = heldTokens(index, model, sections, known);
  const insert = ({ anchor, labels, before, behind }: SectionTokens, follows: NodeId | null) =>
    index.insert(anchor, labels, clock, { at, follows, tokensBefore: before, tokensBehind: behind });
  // A slot model compares whole prompts, so earlier turns must be in the index too.
  const passed: NodeId[] = [];
  for (const section of sections.slice(known.cachedSections, -1))
    passed.push(insert(section, passed.at(-1) ?? known.cachedEnd));
  const leaf = insert(sections.at(-1) as SectionTokens, passed.at(-1) ?? known.cachedEnd);
  for (const turn of passed) index.evict(turn);
  // Last, so that the prefix that both share keeps its nodes.
  if (replaces !== null) index.evict(replaces);
  return { cachedTokens, cachedBlocks, replaces, leaf };
}

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
  const before = sections.at(-2);
  const isShared = before !== undefined && before.labels.length === 0 && index.hasAnchor(before.anchor);
  const cachedTokens = Math.max(known.cachedTokens, isShared ? before.upTo(0, false) : 0);
  return { cachedTokens, cachedBlocks: 0, replaces: null };
}

export const KEEPS_ALL: ResidencyModel = { expire: () => {}, ttlMs: null };

/** Throws a RangeError for a limit that is not above 0. */
export function residencyModel(config: ResidencyConfig): ResidencyModel {
  if (config.kind === "all") return KEEPS_ALL;
  if (config.kind === "slots") return promptSlots(config.slots);
  const { ttlMs } = config;
  if (!(ttlMs > 0)) throw new RangeError(`ttlMs is ${ttlMs}, not above 0`);
  return { ttlMs, expire: (index, now) => index.dropUnusedSince(now - ttlMs) };
}

/** Keeps the last prompt of each slot (llama.cpp), of this scope alone, one request at a time. RangeError unless a whole number above 0. */
export function promptSlots(slots: number): ResidencyModel {
  if (!Number.isInteger(slots) || slots < 1) throw new RangeError(`slots is ${slots}, not a whole number above 0`);
  return {
    ttlMs: null,
    // More prompts exist only if the index was filled under another model.
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

const NOTHING_SHARED = { shared: 0, lastBlocks: 0 };

/** Everything up to the last anchor that both prompts have, and the equal blocks after it. */
function sharedWith(
  index: ContextIndex,
  { id, lastUsed }: HeldEnd,
  byAnchor: ReadonlyMap<Digest, SectionTokens>,
  last: SectionTokens | undefined,
): typeof NOTHING_SHARED {
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

export interface FreeSlot {
  readonly tokens: number;
  readonly shared: number;
  /** Ascends with every use; 0: never used. */
  readonly lastUsed: number;
}

const UNUSED: FreeSlot = { tokens: 0, shared: 0, lastUsed: 0 };

/** A smaller match does not justify overwriting a slot, as in llama.cpp's server. */
const MIN_SHARE = 0.1;

/** The slot with the longest shared prefix, if above {@link MIN_SHARE} of its tokens; else the least recently used one. */
export function chooseSlot(free: readonly FreeSlot[]): number | undefined {
  const reused = ({ tokens, shared }: FreeSlot) => (shared > tokens * MIN_SHARE ? shared : 0);
  const [best] = [...free.entries()].sort(([, a], [, b]) => reused(b) - reused(a) || a.lastUsed - b.lastUsed);
  return best?.[0];
}
