/*
 * context-index: what an engine's prefix cache should hold, per scope: the served sequences of blocks, a radix tree per anchor (the digest
 * of the prompt before the blocks), linked to a forest.
 * Enters: served prompts, evictions, the engine's reports, time. Leaves: how much of a sequence should be cached, and the best path through
 * a set of blocks. Residency models say what an engine evicts by itself.
 */

import { append, type RowChanges } from "../text/collections.js";
import type { Digest, Label, NodeId, TurnId } from "../text/ids.js";
import {
  type BlockTokens,
  checkForest,
  depthOf,
  followSequence,
  type HeldEnd,
  type IndexEntry,
  type IndexNode,
  isLeaf,
  type PassedAnchor,
  type Place,
  PrefixForest,
  type PrefixMatch,
  pathTo,
  placesAfter,
  type ServedNode,
  type ServedPrompt,
  searchPrefix,
  servedAfter,
  type UsablePath,
  upToAnchor,
  usablePaths,
  type WantedTokens,
  walkGreedily,
} from "./prefix-forest.js";

const NO_MATCH: PrefixMatch = { labels: [], tokens: 0, searchPath: [] };
const NOTHING_ELSE: ServedPrompt = { at: 0, follows: null, tokensBefore: 0, tokensBehind: 0 };

/**
 * The context index of one scope (docs/internals/algorithms.md, "The context index"): which block sequences an engine's prefix cache should
 * hold. Mutable; changes are drained as rows; reads no clock. Holds at most `maxNodes` nodes: beyond that it evicts least recently used
 * leaves, a tenth of the nodes at a time. Everything else leaves by a residency model or an engine's report.
 */
export class ContextIndex {
  readonly #forest: PrefixForest;

  /** @param blockTokens tokens of a block; default: 0 for every block */
  constructor(
    nodes: readonly IndexNode[],
    nextId: number,
    private readonly maxNodes: number,
    blockTokens: BlockTokens = () => 0,
  ) {
    this.#forest = new PrefixForest(nodes, nextId, blockTokens);
  }

  get size(): number {
    return this.#forest.places.size;
  }

  /** Tokens of an engine's cache that holds the whole index, each prefix once; estimated. */
  get tokens(): number {
    return this.#forest.tokens;
  }

  /** The id of the next new node; stored, so that ids are never reused. */
  get nextId(): number {
    return this.#forest.nextId;
  }

  /** Whether some request after this anchor should still be cached, and so the prompt's prefix before the blocks. */
  hasAnchor(anchor: Digest): boolean {
    return this.#forest.anchors.has(anchor);
  }

  /** How many leading blocks of a sequence should be cached after the anchor, in this order. */
  heldBlocks(anchor: Digest, sequence: readonly Label[]): number {
    return followSequence(this.#forest.anchors.get(anchor), sequence).held;
  }

  /** The blocks that should be cached right after this sequence, and the anchor. */
  servedAfter(anchor: Digest, sequence: readonly Label[]): Pick<ReadonlySet<Label>, "has"> {
    return servedAfter(this.#forest.anchors.get(anchor), sequence);
  }

  /** The node where exactly this sequence ends; null for none. */
  endOf(anchor: Digest, sequence: readonly Label[]): NodeId | null {
    return followSequence(this.#forest.anchors.get(anchor), sequence).end?.row.id ?? null;
  }

  /** The served path after `anchor` with the most tokens among those whose every block is wanted; exact, see {@link searchPrefix}. */
  search(anchor: Digest, wanted: WantedTokens): PrefixMatch {
    const root = this.#forest.anchors.get(anchor);
    const found = root === undefined ? null : searchPrefix(root, wanted);
    return found === null ? NO_MATCH : { ...pathTo(found.node, found.taken), tokens: found.tokens };
  }

  /** What requests for these blocks can use of the sequences served after `anchor`, least recently used first; see {@link usablePaths}. */
  usable(anchor: Digest, requests: Iterable<ReadonlySet<Label>>): UsablePath[] {
    const root = this.#forest.anchors.get(anchor);
    return root === undefined ? [] : usablePaths(root, requests);
  }

  /** A greedy walk from the anchor along wanted blocks, see {@link walkGreedily}. */
  walk(anchor: Digest, wanted: ReadonlySet<Label>): Omit<PrefixMatch, "tokens"> {
    return walkGreedily(this.root(anchor), wanted);
  }

  /** Exclusive upper bound of all labels that it ever held. */
  get labelBound(): number {
    return this.#forest.labelBound;
  }

  /**
   * The root of the sequences served after an anchor; undefined for none. From there `staler` leads through all their nodes, most recently
   * used first and parents before children.
   */
  root(anchor: Digest): ServedNode | undefined {
    return this.#forest.anchors.get(anchor);
  }

  /** The blocks from the anchor to a node, with the first `taken` blocks of its own run. */
  pathTo(id: NodeId, taken: number): Omit<PrefixMatch, "tokens"> {
    const place = this.#forest.places.get(id);
    if (place === undefined) throw new Error(`context index: no node ${id}`);
    return pathTo(place, taken);
  }

  /**
   * Adds a sequence that is being served after an anchor at logical time `now`. Splits at most one node and adds at most two. Returns the
   * node where the sequence ends, to be stored with the request for eviction and feedback.
   */
  insert(anchor: Digest, sequence: readonly Label[], now: number, prompt: ServedPrompt = NOTHING_ELSE): NodeId {
    const forest = this.#forest;
    const follows = prompt.follows === null ? undefined : forest.places.get(prompt.follows);
    let place = forest.anchors.get(anchor) ?? forest.add(follows ?? null, anchor, [], 0, prompt.tokensBefore);
    if (place.row.tokens === 0) forest.setTokensBefore(place, prompt.tokensBefore);
    let at = 0;
    while (at < sequence.length) {
      const child = place.children.get(sequence[at] as Label);
      if (child === undefined) {
        place = forest.add(place, null, sequence.slice(at), place.row.nextPosition++);
        at = sequence.length;
      } else {
        const { run } = child.row;
        let same = 0;
        while (same < run.length && at + same < sequence.length && run[same] === sequence[at + same]) same++;
        place = same === run.length ? child : forest.split(child, same);
        at += same;
      }
    }
    if (place.row.anchor === null) forest.setTokensAfter(place, prompt.tokensBehind);
    forest.use(place, now, prompt.at);
    forest.countLive(place, 1);
    this.#trim(place);
    return place.row.id;
  }

  /** The engine evicted one request that ended at this node. Prunes upwards; O(height). False: already gone. */
  evict(id: NodeId): boolean {
    const place = this.#forest.places.get(id);
    if (place === undefined || place.row.live === 0) return false;
    this.#forest.countLive(place, -1);
    if (place.row.live === 0 && place.row.anchor === null) this.#forest.setTokensAfter(place, 0);
    this.#forest.prune(place);
    return true;
  }

  /** Removes blocks whose text was forgotten, and everything after them: it can never match again. */
  forget(labels: ReadonlySet<Label>): void {
    const forest = this.#forest;
    const parents: Place[] = [];
    const pending = [...forest.tops()];
    for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
      const cut = place.row.run.findIndex((label) => labels.has(label));
      if (cut < 0) {
        append(pending, placesAfter(place));
        continue;
      }
      for (const next of [...placesAfter(place)]) forest.removeBranch(next);
      if (cut > 0 && place.row.live > 0) forest.shorten(place, cut);
      else {
        forest.removeBranch(place);
        if (place.above !== null) parents.push(place.above);
      }
    }
    this.#prune(parents);
  }

  /** Evicts what was last used at or before `time`, in milliseconds. A prefix counts as used whenever anything after it is. */
  dropUnusedSince(time: number): void {
    // `places` is in LRU order, here and below: each pass evicts the oldest first.
    for (const place of this.#forest.places.values()) {
      if (place.row.usedAt <= time && isLeaf(place)) this.#forest.cut(place);
    }
  }

  /** Evicts least recently used leaves, block by block from their ends, until at most so many tokens are left. */
  dropToFit(tokens: number): void {
    const forest = this.#forest;
    for (const place of forest.places.values()) {
      if (forest.tokens <= tokens) return;
      if (isLeaf(place)) forest.cutBack(place, forest.tokens - tokens);
    }
  }

  /**
   * A request that ended at this node and was served at logical time `clock` hit only its first `tokens` tokens. Whatever was after more
   * of its path was evicted, and by LRU so was everything used no later. That is removed, except what was served since, such as the
   * request's own path. With no hit at all, everything used before `clock` was evicted. What was used after `settled`, in milliseconds, may
   * not have been written yet when the request arrived: the miss says nothing about it.
   */
  miss(id: NodeId, clock: number, tokens: number, settled: number): void {
    const forest = this.#forest;
    const end = forest.places.get(id);
    if (end === undefined) return;
    const parents: Place[] = [];
    let gone = tokens === 0 ? clock - 1 : 0;
    let served: Place | null = null;
    for (let place: Place | null = end; place !== null && depthOf(place) > tokens; place = place.above) {
      const pending = [...placesAfter(place)].filter((next) => next !== served);
      for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
        if (next.row.lastUsed >= clock || next.row.usedAt > settled) append(pending, placesAfter(next));
        else {
          gone = Math.max(gone, next.row.lastUsed);
          forest.removeBranch(next);
          if (next.above !== null) parents.push(next.above);
        }
      }
      served = place;
    }
    this.#prune(parents);
    for (const place of forest.places.values()) {
      if (place.row.lastUsed > gone) return;
      if (isLeaf(place) && place.row.usedAt <= settled) forest.cut(place);
    }
  }

  /**
   * The engine still held at time `at`, in milliseconds, what the request at this node used at `clock`. No effect if a later request used
   * the node.
   */
  refresh(id: NodeId, clock: number, at: number): void {
    const end = this.#forest.places.get(id);
    if (end !== undefined && end.row.lastUsed === clock) this.#forest.refresh(end, at);
  }

  /** The ends of the prompts that should be cached, least recently used first; prompts with the same end are one entry. */
  *ends(): Generator<HeldEnd, void, undefined> {
    for (const place of this.#forest.places.values()) {
      const { id, live, lastUsed, tokens } = place.row;
      if (live > 0) yield { id, live, lastUsed, tokens: depthOf(place) + (place.row.anchor === null ? tokens : 0) };
    }
  }

  /** How many prompts that should be cached end at a node. */
  heldAt(id: NodeId): number {
    return this.#forest.places.get(id)?.row.live ?? 0;
  }

  /** The anchors of a prompt that ends at a node, each with the blocks after it, last anchor first. */
  *wayTo(id: NodeId): Generator<PassedAnchor, void, undefined> {
    let place: Place | null = this.#forest.places.get(id) ?? null;
    while (place !== null) {
      const steps = [...upToAnchor(place)];
      const root = steps.at(-1) as Place;
      if (root.row.anchor === null) throw new Error(`context index: node ${id} has no anchor`);
      yield { anchor: root.row.anchor, labels: steps.reverse().flatMap(({ row }) => row.run) };
      place = root.above;
    }
  }

  /** Every node with its search path, parents before children, at most `limit`. */
  entries(limit: number): IndexEntry[] {
    const entries: IndexEntry[] = [];
    const totals = new Map<Place, number>();
    const pending = [...this.#forest.anchors.values()].reverse();
    for (let place = pending.pop(); place !== undefined && entries.length < limit; place = pending.pop()) {
      const { id, uses, live, lastUsed, usedAt, run } = place.row;
      const tokens = place.parent === null ? place.row.tokens : place.runTokens;
      const totalTokens = tokens + (place.parent === null ? 0 : (totals.get(place.parent) ?? 0));
      totals.set(place, totalTokens);
      entries.push({ id, ...pathTo(place, run.length), uses, live, lastUsed, usedAt, tokens, totalTokens });
      append(
        pending,
        [...place.children.values()].sort((a, b) => b.row.position - a.row.position),
      );
    }
    return entries;
  }

  /** Returns and resets what changed since the last call. */
  drain(): RowChanges<NodeId, IndexNode> {
    return this.#forest.drain();
  }

  /** All nodes, as stored, by id; later changes do not reach them. */
  stored(): IndexNode[] {
    return this.#forest.stored();
  }

  /** Throws if an invariant is broken; for tests, and for checking stored rows. */
  check(): void {
    checkForest(this.#forest, this.maxNodes);
  }

  /** Beyond `maxNodes`, evicts a tenth of the nodes, but never the sequence that is being served (`spared`). */
  #trim(spared: Place): void {
    const { places } = this.#forest;
    if (places.size <= this.maxNodes) return;
    const target = Math.floor(this.maxNodes * 0.9);
    for (const place of places.values()) {
      if (places.size <= target) return;
      if (isLeaf(place) && place !== spared) this.#forest.cut(place);
    }
    if (places.size > target) this.#dropOldestTurns(spared, target);
  }

  /** Drops the oldest turns of a prompt that alone takes more than `most` nodes: their anchors leave the index. */
  #dropOldestTurns(end: Place, most: number): void {
    let kept = 0;
    let first = end;
    for (let place: Place | null = end; place !== null; place = first.above) {
      const own = [...upToAnchor(place)];
      if (kept > 0 && kept + own.length > most) break;
      kept += own.length;
      first = own.at(-1) as Place;
    }
    let top = first.above;
    if (top === null) return;
    this.#forest.cutAbove(first);
    while (top.above !== null) top = top.above;
    this.#forest.removeBranch(top);
  }

  /** Comes after all cuts: pruning joins a node with its only child, and the result must not depend on which branch was cut first. */
  #prune(parents: readonly Place[]): void {
    const { places } = this.#forest;
    for (const place of parents) if (places.get(place.row.id) === place) this.#forest.prune(place);
  }
}

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
 * What an engine is assumed to have evicted without saying so. Asked before each request is planned. Named evictions and engines' reports
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

/** Nothing leaves by itself. */
export const KEEPS_ALL: ResidencyModel = { expire: () => {}, limits: { kind: "all" } };

/** Whether a prefix last used at `usedAt` is within the model's TTL; true under a model without one. Times in milliseconds. */
export function isWithinTtl({ limits }: ResidencyModel, usedAt: number, now: number): boolean {
  return limits === undefined || !("ttlMs" in limits) || now - usedAt < limits.ttlMs;
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

type Foresight = { readonly foresee?: ResidencyModel["foresee"] | undefined };

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
  { foresee }: Foresight,
  sections: readonly SectionTokens[],
  known: KnownTurns,
  clock: number,
  at: number,
): Served {
  const foreseen = heldTokens(index, { foresee }, sections, known);
  const insert = ({ anchor, labels, before, behind }: SectionTokens, follows: NodeId | null) =>
    index.insert(anchor, labels, clock, { at, follows, tokensBefore: before, tokensBehind: behind });
  const last = sections.at(-1) as SectionTokens;
  const { cachedTokens, cachedBlocks, replaces } = foreseen;
  if (foresee === undefined && sections.length === 1)
    return { cachedTokens, cachedBlocks, replaces, leaf: insert(last, known.end) };
  // A slot model compares whole prompts, so the earlier turns have to be in the index too. Restated turns are in no other prompt.
  const passed: NodeId[] = [];
  for (const section of sections.slice(known.sections, -1)) passed.push(insert(section, passed.at(-1) ?? known.end));
  const leaf = insert(last, passed.at(-1) ?? known.end);
  for (const turn of passed) index.evict(turn);
  // Only now: the prefix that both share keeps its nodes.
  if (replaces !== null) index.evict(replaces);
  return { cachedTokens, cachedBlocks, replaces, leaf };
}

/** What a prompt with these sections should hit. */
export function heldTokens(
  index: ContextIndex,
  { foresee }: Foresight,
  sections: readonly SectionTokens[],
  known: KnownTurns,
): Foreseen {
  return foresee === undefined ? allHeld(index, sections, known) : foresee(index, sections);
}

/** The hit if everything in the index hits. */
function allHeld(index: ContextIndex, sections: readonly SectionTokens[], known: KnownTurns): Foreseen {
  const last = sections.at(-1);
  if (last === undefined || !index.hasAnchor(last.anchor)) {
    // Of blocks without labels others may have shared what is before them.
    const before = sections.at(-2);
    const isShared = before !== undefined && before.labels.length === 0 && index.hasAnchor(before.anchor);
    const cachedTokens = Math.max(known.tokens, isShared ? before.upTo(0, false) : 0);
    return { cachedTokens, cachedBlocks: 0, replaces: null };
  }
  const cachedBlocks = index.heldBlocks(last.anchor, last.labels);
  return { cachedTokens: last.upTo(cachedBlocks, false), cachedBlocks, replaces: null };
}
