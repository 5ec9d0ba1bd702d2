/*
 * context-index: what an engine's prefix cache should hold, per scope: served sequences of blocks behind the digest of what stood before
 * them, as a forest of runs.
 * Enters: served prompts, evictions, the engine's reports, time. Leaves: how much of a sequence should be cached, and the best path through
 * a set of blocks. Residency models say what an engine lets go of by itself.
 */

import type { Digest, Label, NodeId } from "../text/ids.js";
import { append } from "../text/lists.js";
import type {
  HeldEnd,
  IndexChanges,
  IndexEntry,
  IndexNode,
  PassedAnchor,
  PrefixMatch,
  ServedNode,
  ServedPrompt,
} from "./index-node.js";
import { depthOf, isLeaf, ownTokens, type Place, pathTo, placesBehind, upToAnchor } from "./index-place.js";
import { type BlockTokens, PrefixForest } from "./prefix-forest.js";
import { followSequence, searchPrefix, walkGreedily } from "./prefix-search.js";
import { checkListByUse } from "./use-order.js";

const NO_MATCH: PrefixMatch = { labels: [], tokens: 0, searchPath: [] };
const NOTHING_BESIDE: ServedPrompt = { at: 0, follows: null, tokensBefore: 0, tokensBehind: 0 };

/**
 * The context index of one scope (docs/internals/algorithms.md, "The context index"): which block sequences an engine's prefix cache should
 * hold. Changes are made in place and drained as rows; nothing here reads a clock. Holds at most `maxNodes` nodes: past that the
 * least recently used leaves go, a tenth at a time. What else leaves it is a residency model's to say, and what engines report.
 */
export class ContextIndex {
  readonly #forest: PrefixForest;

  /** `blockTokens` is asked for the tokens of every block in it; without it blocks weigh nothing. */
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

  /** Tokens that an engine holds which holds all of this, each prefix once; estimated. */
  get tokens(): number {
    return this.#forest.tokens;
  }

  /** The id that the next new node gets; stored, so that ids are never reused. */
  get nextId(): number {
    return this.#forest.nextId;
  }

  /** Whether some request was served behind this anchor and should still be held: its beginning should be cached. */
  hasAnchor(anchor: Digest): boolean {
    return this.#forest.anchors.has(anchor);
  }

  /** How many blocks from the front of a sequence should be held behind the anchor in this order. */
  heldBlocks(anchor: Digest, sequence: readonly Label[]): number {
    return followSequence(this.#forest.anchors.get(anchor), sequence).held;
  }

  /** The node where exactly this sequence ends; null where none does. */
  endOf(anchor: Digest, sequence: readonly Label[]): NodeId | null {
    return followSequence(this.#forest.anchors.get(anchor), sequence).end?.row.id ?? null;
  }

  /** The served path behind `anchor` that holds the most tokens while every block on it is wanted; exact, see {@link searchPrefix}. */
  search(anchor: Digest, wanted: ReadonlyMap<Label, number>): PrefixMatch {
    const root = this.#forest.anchors.get(anchor);
    const found = root === undefined ? null : searchPrefix(root, wanted);
    return found === null ? NO_MATCH : { ...pathTo(found.node, found.taken), tokens: found.tokens };
  }

  /** A greedy walk from the anchor through wanted blocks, see {@link walkGreedily}. */
  walk(anchor: Digest, wanted: ReadonlySet<Label>): Omit<PrefixMatch, "tokens"> {
    return walkGreedily(this.root(anchor), wanted);
  }

  /** Greater than every label that it has held. */
  get labelBound(): number {
    return this.#forest.labelBound;
  }

  /**
   * Where the sequences begin that were served behind an anchor; undefined where none was. From there `staler` leads through all their
   * nodes, those used last first and each parent before its children.
   */
  root(anchor: Digest): ServedNode | undefined {
    return this.#forest.anchors.get(anchor);
  }

  /** The blocks from the anchor to a node, with the first `taken` of its own run. */
  pathTo(id: NodeId, taken: number): Omit<PrefixMatch, "tokens"> {
    const place = this.#forest.places.get(id);
    if (place === undefined) throw new Error(`context index: no node ${id}`);
    return pathTo(place, taken);
  }

  /**
   * Takes in a sequence that is being served behind an anchor at logical time `now`. At most one node is split and two are added.
   * Returns the node where the sequence ends, to be kept with the request for eviction and feedback.
   */
  insert(anchor: Digest, sequence: readonly Label[], now: number, prompt: ServedPrompt = NOTHING_BESIDE): NodeId {
    const forest = this.#forest;
    const follows = prompt.follows === null ? undefined : forest.places.get(prompt.follows);
    let place = forest.anchors.get(anchor) ?? forest.add(follows ?? null, anchor, [], 0, prompt.tokensBefore);
    if (place.row.tokens === 0) forest.weighBeginning(place, prompt.tokensBefore);
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
    if (place.row.anchor === null) forest.weighEnd(place, prompt.tokensBehind);
    forest.use(place, now, prompt.at);
    forest.countLive(place, 1);
    this.#trim(place);
    return place.row.id;
  }

  /** One request that ended at this node was evicted from the engine. Prunes upwards; O(height). False: already gone. */
  evict(id: NodeId): boolean {
    const place = this.#forest.places.get(id);
    if (place === undefined || place.row.live === 0) return false;
    this.#forest.countLive(place, -1);
    if (place.row.live === 0 && place.row.anchor === null) this.#forest.weighEnd(place, 0);
    this.#forest.prune(place);
    return true;
  }

  /** These blocks' text is gone: whatever stood behind any of them can never be matched again. */
  forget(labels: ReadonlySet<Label>): void {
    // Pruning comes last: it joins a node with its only child, and what is left must not depend on which branch was cut first.
    const bereft: Place[] = [];
    const pending = [...this.#forest.tops()];
    for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
      const cut = place.row.run.findIndex((label) => labels.has(label));
      if (cut < 0) {
        append(pending, placesBehind(place));
        continue;
      }
      for (const behind of [...placesBehind(place)]) this.#forest.removeBranch(behind);
      if (cut > 0 && place.row.live > 0) this.#forest.shorten(place, cut);
      else {
        this.#forest.removeBranch(place);
        if (place.above !== null) bereft.push(place.above);
      }
    }
    this.#pruneAll(bereft);
  }

  /** What was not used since `time`, in milliseconds, leaves. A prefix is as young as what was last served behind it. */
  dropUnusedSince(time: number): void {
    for (const place of this.#forest.places.values()) {
      if (place.row.usedAt <= time && isLeaf(place)) this.#forest.cut(place);
    }
  }

  /** The least recently used leaves go, each from its end, until what is left comes to at most so many tokens. */
  dropToFit(tokens: number): void {
    for (const place of this.#forest.places.values()) {
      if (this.tokens <= tokens) return;
      if (isLeaf(place)) this.#forest.cutBack(place, this.tokens - tokens);
    }
  }

  /**
   * A request that ended at this node and was served at logical time `clock` hit only its first `tokens` tokens. What stood behind more
   * of its path was gone, and so was all that had been used no later than that: caches let go of what was used longest ago. It is removed
   * unless it was served since, as the request's own path was. Where nothing was hit, all that was used before is gone. What was used
   * after `settled`, in milliseconds, may not have been written yet when the request came: of that a miss says nothing.
   */
  miss(id: NodeId, clock: number, tokens: number, settled: number): void {
    const end = this.#forest.places.get(id);
    if (end === undefined) return;
    const bereft: Place[] = [];
    let gone = tokens === 0 ? clock - 1 : 0;
    let served: Place | null = null;
    for (let place: Place | null = end; place !== null && depthOf(place) > tokens; place = place.above) {
      const pending = [...placesBehind(place)].filter((behind) => behind !== served);
      for (let behind = pending.pop(); behind !== undefined; behind = pending.pop()) {
        if (behind.row.lastUsed >= clock || behind.row.usedAt > settled) append(pending, placesBehind(behind));
        else {
          gone = Math.max(gone, behind.row.lastUsed);
          this.#forest.removeBranch(behind);
          if (behind.above !== null) bereft.push(behind.above);
        }
      }
      served = place;
    }
    this.#pruneAll(bereft);
    for (const place of this.#forest.places.values()) {
      if (place.row.lastUsed > gone) return;
      if (isLeaf(place) && place.row.usedAt <= settled) this.#forest.cut(place);
    }
  }

  /** The engine held what the request at this node used at `clock` still at `at`, in milliseconds; a later request's use says more. */
  refresh(id: NodeId, clock: number, at: number): void {
    const end = this.#forest.places.get(id);
    if (end !== undefined && end.row.lastUsed === clock) this.#forest.refresh(end, at);
  }

  /** The prompts that should be held, by where their blocks end, those used longest ago first; prompts that end alike come as one. */
  *ends(): Generator<HeldEnd, void, undefined> {
    for (const place of this.#forest.places.values()) {
      const { id, live, lastUsed, tokens } = place.row;
      if (live > 0) yield { id, live, lastUsed, tokens: depthOf(place) + (place.row.anchor === null ? tokens : 0) };
    }
  }

  /** How many prompts should be held whose blocks end at a node. */
  heldAt(id: NodeId): number {
    return this.#forest.places.get(id)?.row.live ?? 0;
  }

  /** The anchors that a prompt passed on its way to a node, each with the blocks that it has behind it: the last anchor first. */
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
    const pending = [...this.#forest.anchors.values()].reverse();
    for (let place = pending.pop(); place !== undefined && entries.length < limit; place = pending.pop()) {
      const { id, uses, live, lastUsed, run } = place.row;
      entries.push({ id, ...pathTo(place, run.length), uses, live, lastUsed });
      append(
        pending,
        [...place.children.values()].sort((a, b) => b.row.position - a.row.position),
      );
    }
    return entries;
  }

  /** Hands over what changed since the last call. */
  drain(): IndexChanges {
    return this.#forest.drain();
  }

  /** Throws where the tree breaks one of its own rules; for tests, and for checking what is stored. */
  check(): void {
    let tokens = 0;
    for (const [id, place] of this.#forest.places) {
      const { row, above, children, continuations } = place;
      const isRoot = row.anchor !== null;
      if (!isRoot && above === null) throw new Error(`node ${id}: an anchor belongs to a root and to nothing else`);
      if (isRoot !== (row.run.length === 0)) throw new Error(`node ${id}: only a root has no blocks`);
      if (row.live === 0 && isLeaf(place)) throw new Error(`node ${id}: dead leaf`);
      if (!isRoot && row.live === 0 && children.size === 1 && continuations.size === 0)
        throw new Error(`node ${id}: unary chain`);
      if ((above?.row.id ?? null) !== row.parent) throw new Error(`node ${id}: linked wrongly`);
      if (above !== null && (above.row.lastUsed < row.lastUsed || above.row.usedAt < row.usedAt))
        throw new Error(`node ${id}: younger than what it needs`);
      for (const [first, child] of children) {
        if (child.row.run[0] !== first || child.above !== place)
          throw new Error(`node ${child.row.id}: linked wrongly`);
        if (child.row.position >= row.nextPosition) throw new Error(`node ${child.row.id}: position was never given`);
      }
      for (const root of continuations)
        if (root.above !== place) throw new Error(`node ${root.row.id}: linked wrongly`);
      tokens += ownTokens(place);
    }
    for (const root of this.#forest.anchors.values()) checkListByUse(root);
    if (tokens !== this.tokens) throw new Error(`${this.tokens} tokens counted, ${tokens} there`);
    if (this.size > this.maxNodes) throw new Error(`${this.size} nodes, more than ${this.maxNodes}`);
  }

  #pruneAll(bereft: readonly Place[]): void {
    for (const place of bereft) if (this.#forest.places.get(place.row.id) === place) this.#forest.prune(place);
  }

  /** Keeps the bound, never at the cost of the sequence that is being served (`spared`). */
  #trim(spared: Place): void {
    if (this.size <= this.maxNodes) return;
    const target = Math.floor(this.maxNodes * 0.9);
    for (const place of this.#forest.places.values()) {
      if (this.size <= target) return;
      if (isLeaf(place) && place !== spared) this.#forest.cut(place);
    }
    if (this.size > target) this.#dropBeginning(spared, target);
  }

  /** Of a prompt that alone takes more than `most` nodes, the turns longest ago are known no more one by one. */
  #dropBeginning(end: Place, most: number): void {
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
}
