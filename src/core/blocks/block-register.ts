/*
 * blocks: context blocks, one per memory and version of its text, with labels that are never reused.
 * Enters: retrieved memories. Leaves: blocks in relevance order, texts by label, which block supersedes which, what is forgotten; and, if
 * the memory source fails, blocks recalled by the words of the query. Beside them, which blocks a conversation and a scope retrieved before.
 */

import { type InjectedBlock, renderBlock } from "../prompt/section.js";
import { type Digest, digestOf, type Label, type MemoryId } from "../text/ids.js";
import { type ComparedText, canonicalText, comparedText } from "../text/memory-text.js";
import type { TokenCounter } from "../text/message.js";
import {
  type EndedMemory,
  type MemoryVersion,
  ownWords,
  type RegisterChanges,
  type RenderedMemory,
  type RenderedWords,
  type RequestedMemory,
  type Resolution,
  type StoredBlock,
  type StoredRegister,
  WITHDRAWN,
} from "./context-block.js";

/**
 * The context blocks of one scope: the label of each text, the current text of each memory, and which texts are superseded. Labels count up
 * from 1 and are never reused, even after a block is forgotten.
 */
export class BlockRegister {
  readonly #blocks = new Map<Label, StoredBlock>();
  readonly #byText = new Map<Digest, Label>();
  readonly #memories: MemoryVersions;
  readonly #forgotten: Set<MemoryId>;
  readonly #dirtyBlocks = new Set<Label>();
  readonly #removedBlocks = new Set<Label>();
  readonly #newlyForgotten = new Set<MemoryId>();
  /** Texts in the form in which they are compared with others, each made when it is first wanted; not stored. */
  readonly #compared = new Map<Label, ComparedText>();
  #nextLabel: number;
  #textLength = 0;
  #currentTokens = 0;
  /** Tokens of lines without labels, counted where single prompts have them. */
  readonly #unlabelledTokens = new Map<Label, number>();

  constructor(
    stored: StoredRegister,
    nextLabel: number,
    private readonly countTokens: TokenCounter,
  ) {
    this.#nextLabel = nextLabel;
    this.#forgotten = new Set(stored.forgotten);
    for (const block of stored.blocks) {
      const { label, text } = block;
      // Stored counts may be another counter's.
      this.#keep({ ...block, tokens: countTokens.template === undefined ? block.tokens : this.#tokensOf(label, text) });
    }
    this.#memories = new MemoryVersions(stored.versions);
  }

  /** The label of the next new block; stored, so that labels are never reused. */
  get nextLabel(): number {
    return this.#nextLabel;
  }

  get size(): number {
    return this.#blocks.size;
  }

  /** Characters of all texts, and of the forms in which they were compared, for the bound on memory. */
  get textLength(): number {
    return this.#textLength;
  }

  /** Tokens of these blocks' lines; 0 for a block that is gone. */
  tokensOf(labels: Iterable<Label>): number {
    let tokens = 0;
    for (const label of labels) tokens += this.get(label)?.tokens ?? 0;
    return tokens;
  }

  /** Tokens of all current blocks. Maintained incrementally: every request with a budget reads it. */
  get currentTokens(): number {
    return this.#currentTokens;
  }

  get(label: Label): StoredBlock | undefined {
    return this.#blocks.get(label);
  }

  withText(textDigest: Digest): Label | undefined {
    return this.#byText.get(textDigest);
  }

  /** The text of a block. Throws for an unknown label: leaving it out would break the promise that a prompt is complete. */
  textOf = (label: Label): string => {
    const block = this.#blocks.get(label);
    if (block === undefined) throw new Error(`block [${label}] is not in the register`);
    return block.text;
  };

  /** Tokens of a block's line as a turn injected it; 0 if its text is gone. */
  lineTokens(block: InjectedBlock): number {
    const stored = this.#blocks.get(block.label);
    if (stored === undefined) return 0;
    if (block.replaces.length > 0) return this.countTokens(renderBlock(block, stored.text));
    if (!block.isUnlabelled) return stored.tokens;
    const known = this.#unlabelledTokens.get(block.label);
    if (known !== undefined) return known;
    const tokens = this.countTokens(renderBlock(block, stored.text));
    this.#unlabelledTokens.set(block.label, tokens);
    return tokens;
  }

  /** Blocks that are the current text of some memory, in label order. */
  *current(): Iterable<StoredBlock> {
    for (const block of this.#blocks.values()) if (block.supersededBy === null) yield block;
  }

  /** A memory with this block's text, preferably as its current text; of several the first by id. */
  memoryOf(label: Label): MemoryId | undefined {
    const holders = this.#memories.holdersOf(label);
    return holders.find((id) => this.#memories.currentOf(id) === label) ?? holders[0];
  }

  /** A block's text in the form in which it is compared with others. */
  comparedOf = (label: Label): ComparedText => {
    const known = this.#compared.get(label);
    if (known !== undefined) return known;
    const compared = comparedText(this.textOf(label));
    this.#compared.set(label, compared);
    this.#textLength += lengthOf(compared);
    return compared;
  };

  /** The memories that a search found and whose current text is this block's. */
  foundWith(label: Label): readonly MemoryId[] {
    return this.#memories.foundWith(label);
  }

  /** Whether all memories whose current text is this block's belong to runs: no other prompt may have it unasked. */
  isOfRuns(label: Label): boolean {
    return this.#memories.hasRuns && this.#memories.commonWith(label) === undefined;
  }

  /** The first by id of the memories whose current text is this block's and that belong to no run; undefined for none. */
  commonWith(label: Label): MemoryId | undefined {
    return this.#memories.commonWith(label);
  }

  /** The texts that a memory has or had. */
  textsOf(id: MemoryId): ReadonlyMap<Label, string> {
    return new Map(this.#memories.labelsOf(id).map((label) => [label, this.textOf(label)]));
  }

  /** Where a memory's own words stand in a block's text; undefined: they are all of it. */
  renderedOf(id: MemoryId, label: Label): RenderedWords | undefined {
    return this.#memories.renderedOf(id, label);
  }

  /** The memory's other blocks with the same words, which only another block template renders differently; newest first. */
  sameWordsAs(id: MemoryId, label: Label): readonly Label[] {
    if (!this.#memories.hasSeveral(id)) return [];
    const others = this.#memories.labelsOf(id).filter((other) => other !== label);
    return others.filter((other) => this.#memories.areSameWords(id, other, label, this.textOf)).sort((a, b) => b - a);
  }

  /** Resolves retrieved memories to blocks: new texts become blocks, changed texts supersede. `memories` is in relevance order. */
  resolve(memories: readonly RenderedMemory[]): Resolution {
    const blocks = new Map<Label, StoredBlock>();
    const requested: RequestedMemory[] = [];
    const seen = new Map<MemoryId, Label>();
    const repeated: MemoryId[] = [];
    const sharing: MemoryId[] = [];
    const conflicting: MemoryId[] = [];
    const forgotten: MemoryId[] = [];
    for (const [rank, { id, text, rendered, end, found, ofRun = false }] of memories.entries()) {
      if (this.#forgotten.has(id)) {
        forgotten.push(id);
        continue;
      }
      const block = this.#blockFor(id, canonicalText(text));
      const before = seen.get(id);
      if (before === block.label) {
        repeated.push(id);
        continue;
      }
      if (before === undefined) {
        seen.set(id, block.label);
        this.#setCurrent(id, block.label, rendered);
        this.#memories.setUntil(id, end?.until);
        this.#memories.setOfRun(id, ofRun);
        if (found === true) this.#memories.setFound(id);
        if (blocks.has(block.label)) sharing.push(id);
      } else {
        conflicting.push(id);
        this.#memories.add(id, block.label, false, rendered);
        this.#settle(block, before);
        if (requested.some((entry) => entry.memoryId === id && entry.label === block.label)) continue;
      }
      requested.push({ memoryId: id, label: block.label, rank });
      blocks.set(block.label, block);
    }
    return {
      blocks: [...blocks.values()],
      memories: requested,
      repeated: distinct(repeated),
      sharing,
      contained: [],
      said: [],
      replaced: [],
      conflicting: distinct(conflicting),
      forgotten: distinct(forgotten),
    };
  }

  /**
   * Takes from memories that no longer hold what they said: their blocks are superseded, by the one that the named memory has, else by none.
   * A memory that a later retrieval gives again holds again. Unknown memories are passed over.
   */
  withdraw(ended: readonly EndedMemory[]): void {
    for (const { id, replacedBy } of ended) {
      const before = this.#memories.currentOf(id);
      if (before === undefined) continue;
      if (before !== WITHDRAWN) {
        this.#memories.add(id, WITHDRAWN, true);
        this.#memories.setUntil(id, undefined);
      }
      const successor = replacedBy === undefined ? undefined : this.#memories.currentOf(replacedBy);
      for (const label of this.#memories.labelsOf(id)) {
        const block = this.#blocks.get(label) as StoredBlock;
        if (label === before || (block.supersededBy === WITHDRAWN && successor !== label))
          this.#settle(block, successor ?? WITHDRAWN);
      }
    }
  }

  /** Withdraws the memories of which their source said that they hold until a time that is past at `now`, in milliseconds since the epoch. */
  expire(now: number): void {
    this.withdraw(this.#memories.endedAt(now).map((id) => ({ id })));
  }

  /** When a memory ceases to hold, in milliseconds since the epoch; undefined: it is not known to. */
  untilOf(id: MemoryId): number | undefined {
    return this.#memories.untilOf(id);
  }

  /** Sets when a known memory ceases to hold; one that does not hold stays so. */
  setUntil(id: MemoryId, until: number | undefined): void {
    if (this.#memories.currentOf(id) !== WITHDRAWN) this.#memories.setUntil(id, until);
  }

  /**
   * The block at the end of a superseded block's chain of successors, or {@link WITHDRAWN}; null for a current block, and for one whose
   * words are still the memory's: another block template alone makes nothing outdated.
   */
  successor(label: Label): Label | null {
    let at = this.#blocks.get(label)?.supersededBy ?? null;
    for (let next = at; next !== null; next = this.#blocks.get(next)?.supersededBy ?? null) at = next;
    if (at === null || at === WITHDRAWN) return at;
    const end = at;
    const hasSameWords = (id: MemoryId) => this.#memories.areSameWords(id, label, end, this.textOf);
    return this.#memories.holdersOf(label).some(hasSameWords) ? null : at;
  }

  /**
   * Forgets a memory for good, every version of its text included. Returns the labels whose text is gone because no other memory has it.
   */
  forget(id: MemoryId): ReadonlySet<Label> {
    this.#forgotten.add(id);
    this.#newlyForgotten.add(id);
    const gone = this.#memories.forget(id);
    for (const label of gone) this.#drop(label);
    for (const block of this.#blocks.values()) {
      const { label, supersededBy } = block;
      if (supersededBy === null || supersededBy === WITHDRAWN || gone.has(supersededBy))
        this.#settle(block, this.#memories.successorOf(label));
    }
    return gone;
  }

  /**
   * Drops every block that is neither named nor needed by a named one. A memory's current text stays while another of its texts does, so
   * that an outdated text never counts as current. A dropped text may return, with a new label. Returns the dropped labels.
   */
  keepOnly(named: ReadonlySet<Label>): ReadonlySet<Label> {
    const kept = this.#memories.withCurrent(named);
    const gone = new Set([...this.#blocks.keys()].filter((label) => !kept.has(label)));
    for (const label of gone) this.#drop(label);
    for (const block of this.#blocks.values()) {
      if (block.supersededBy !== null && gone.has(block.supersededBy))
        this.#settle(block, this.#memories.successorOf(block.label));
    }
    return gone;
  }

  /** Returns and resets what changed since the last call. */
  drain(): RegisterChanges {
    const changes: RegisterChanges = {
      blocks: [...this.#dirtyBlocks].map((label) => ({ ...(this.#blocks.get(label) as StoredBlock) })),
      versions: this.#memories.drain(),
      removedBlocks: [...this.#removedBlocks],
      forgotten: [...this.#newlyForgotten],
    };
    for (const set of [this.#dirtyBlocks, this.#removedBlocks, this.#newlyForgotten]) set.clear();
    return changes;
  }

  /** Everything it holds, as stored; later changes do not reach it. */
  stored(): StoredRegister {
    return {
      blocks: Array.from(this.#blocks.values(), (block) => ({ ...block })),
      versions: this.#memories.stored(),
      forgotten: [...this.#forgotten],
    };
  }

  #blockFor(id: MemoryId, text: string): StoredBlock {
    const current = this.#memories.currentOf(id);
    const unchanged = current === undefined ? undefined : this.#blocks.get(current);
    if (unchanged?.text === text) return unchanged;
    const textDigest = digestOf(text);
    const known = this.#byText.get(textDigest);
    if (known !== undefined) return this.#blocks.get(known) as StoredBlock;
    const label = this.#nextLabel++ as Label;
    const block: StoredBlock = { label, text, textDigest, tokens: this.#tokensOf(label, text), supersededBy: null };
    this.#keep(block);
    this.#dirtyBlocks.add(label);
    return block;
  }

  #tokensOf(label: Label, text: string): number {
    return this.countTokens(renderBlock({ label, replaces: [] }, text));
  }

  #keep(block: StoredBlock): void {
    this.#blocks.set(block.label, block);
    this.#byText.set(block.textDigest, block.label);
    this.#textLength += block.text.length;
    if (block.supersededBy === null) this.#currentTokens += block.tokens;
  }

  #drop(label: Label): void {
    const block = this.#blocks.get(label);
    if (block === undefined) return;
    this.#blocks.delete(label);
    this.#byText.delete(block.textDigest);
    this.#memories.drop(label);
    this.#dirtyBlocks.delete(label);
    this.#removedBlocks.add(label);
    const compared = this.#compared.get(label);
    this.#textLength -= block.text.length + (compared === undefined ? 0 : lengthOf(compared));
    this.#compared.delete(label);
    this.#unlabelledTokens.delete(label);
    if (block.supersededBy === null) this.#currentTokens -= block.tokens;
  }

  /** Makes the block's text the memory's current one. The memory's old block is superseded if no other memory has it. */
  #setCurrent(id: MemoryId, label: Label, rendered: RenderedWords | undefined): void {
    if (this.#memories.isCurrentAs(id, label, rendered)) return;
    const before = this.#memories.currentOf(id);
    this.#memories.add(id, label, true, rendered);
    if (before === label) return;
    this.#settle(this.#blocks.get(label) as StoredBlock, null);
    const old = before === undefined ? undefined : this.#blocks.get(before);
    if (old !== undefined) this.#settle(old, label);
  }

  /** A block is superseded, by `successor`, exactly while it is no memory's current text. */
  #settle(block: StoredBlock, successor: Label | null): void {
    const supersededBy = this.#memories.isCurrent(block.label) ? null : successor;
    if (block.supersededBy === supersededBy) return;
    if (block.supersededBy === null) this.#currentTokens -= block.tokens;
    if (supersededBy === null) this.#currentTokens += block.tokens;
    block.supersededBy = supersededBy;
    this.#dirtyBlocks.add(block.label);
  }
}

/** Each once. Mostly there is none. */
function distinct(ids: readonly MemoryId[]): readonly MemoryId[] {
  return ids.length < 2 ? ids : [...new Set(ids)];
}

const NO_VERSIONS: ReadonlyMap<Label, unknown> = new Map();

/** Whether of a memory's versions no text is left: what says that it no longer holds is none. */
export function hasNoText(versions: ReadonlyMap<Label, unknown>): boolean {
  return versions.size === 0 || (versions.size === 1 && versions.has(WITHDRAWN));
}

/** The versions of one memory. Most memories have one, for which a table would take ten times its room. */
interface Versions {
  /** Label of the current text. */
  current: Label;
  /** Where the words stand in the only version; meaningless where there is a table. */
  rendered: RenderedWords | undefined;
  /** Whether a search found the memory. */
  isFound: boolean;
  /** All versions, in the order in which they came; null while there is one. */
  table: Map<Label, RenderedWords | undefined> | null;
}

/** The versions of a scope's memories: which blocks' texts each memory has or had, and which is its current one. */
export class MemoryVersions {
  readonly #versions = new Map<MemoryId, Versions>();
  /** Memories that have or had each block's text; of most blocks it is one. */
  readonly #holders = new Map<Label, MemoryId | Set<MemoryId>>();
  readonly #dirty = new Set<MemoryId>();
  /** When memories cease to hold, in milliseconds since the epoch: of most it is not known that they do. */
  readonly #untils = new Map<MemoryId, number>();
  /** Memories that belong to a run. */
  readonly #ofRuns = new Set<MemoryId>();

  constructor(stored: readonly MemoryVersion[]) {
    for (const { memoryId, label, current, rendered, found, ofRun, until } of stored) {
      this.#hold(memoryId, label, current, rendered);
      if (found === true) this.#found(memoryId);
      if (ofRun === true) this.#ofRuns.add(memoryId);
      if (until !== undefined) this.#untils.set(memoryId, until);
    }
  }

  /** Sets whether a known memory belongs to a run. */
  setOfRun(id: MemoryId, ofRun: boolean): void {
    if (this.#ofRuns.has(id) === ofRun) return;
    if (ofRun) this.#ofRuns.add(id);
    else this.#ofRuns.delete(id);
    this.#dirty.add(id);
  }

  /** Whether any known memory belongs to a run. */
  get hasRuns(): boolean {
    return this.#ofRuns.size > 0;
  }

  /** As {@link BlockRegister.commonWith}. */
  commonWith(label: Label): MemoryId | undefined {
    return this.holdersOf(label).find((id) => this.currentOf(id) === label && !this.#ofRuns.has(id));
  }

  /** Remembers that a search found a known memory. */
  setFound(id: MemoryId): void {
    if (this.#found(id)) this.#dirty.add(id);
  }

  /** The memories that a search found and whose current text is this block's. */
  foundWith(label: Label): MemoryId[] {
    return this.holdersOf(label).filter((id) => {
      const versions = this.#versions.get(id);
      return versions?.isFound === true && versions.current === label;
    });
  }

  /** When a memory ceases to hold, in milliseconds since the epoch; undefined: it is not known to. */
  untilOf(id: MemoryId): number | undefined {
    return this.#untils.get(id);
  }

  /** The memories that have ceased to hold at `now`. */
  endedAt(now: number): MemoryId[] {
    const ended: MemoryId[] = [];
    for (const [id, until] of this.#untils) if (until <= now) ended.push(id);
    return ended;
  }

  /** Sets when a known memory ceases to hold; undefined: it does not. */
  setUntil(id: MemoryId, until: number | undefined): void {
    if (this.#untils.get(id) === until) return;
    if (until === undefined) this.#untils.delete(id);
    else this.#untils.set(id, until);
    this.#dirty.add(id);
  }

  /** The label of a memory's current text, {@link WITHDRAWN} where it no longer holds; undefined for an unknown memory. */
  currentOf(id: MemoryId): Label | undefined {
    return this.#versions.get(id)?.current;
  }

  /** Whether a block is the current text of some memory. */
  isCurrent(label: Label): boolean {
    const holders = this.#holders.get(label);
    if (typeof holders === "string") return this.currentOf(holders) === label;
    return [...(holders ?? [])].some((id) => this.currentOf(id) === label);
  }

  /** The labels of all versions of a memory; empty for an unknown memory. */
  labelsOf(id: MemoryId): readonly Label[] {
    const versions = this.#versions.get(id);
    return versions === undefined ? [] : labelsIn(versions).filter((label) => label !== WITHDRAWN);
  }

  /** Whether a memory has or had more than one text. */
  hasSeveral(id: MemoryId): boolean {
    return (this.#versions.get(id)?.table?.size ?? 1) > 1;
  }

  /** Where a memory's own words stand in a block's text; undefined: they are all of it. */
  renderedOf(id: MemoryId, label: Label): RenderedWords | undefined {
    const versions = this.#versions.get(id);
    if (versions?.table != null) return versions.table.get(label);
    return versions?.current === label ? versions.rendered : undefined;
  }

  /** Whether a block is a memory's current text, in which its own words stand there. */
  isCurrentAs(id: MemoryId, label: Label, rendered: RenderedWords | undefined): boolean {
    const versions = this.#versions.get(id);
    if (versions?.current !== label) return false;
    const known = versions.table === null ? versions.rendered : versions.table.get(label);
    return (
      known?.template === rendered?.template && known?.start === rendered?.start && known?.length === rendered?.length
    );
  }

  /** Whether two texts of a memory have the same words, and only their block templates differ. */
  areSameWords(id: MemoryId, a: Label, b: Label, textOf: (label: Label) => string): boolean {
    const versions = this.#versions.get(id);
    if (versions === undefined || !isIn(versions, a) || !isIn(versions, b)) return false;
    const [inA, inB] = [this.renderedOf(id, a), this.renderedOf(id, b)];
    return inA?.template !== inB?.template && ownWords(textOf(a), inA) === ownWords(textOf(b), inB);
  }

  /** Memories that have or had a block's text, in an order that survives a reload. */
  holdersOf(label: Label): MemoryId[] {
    return this.#allHoldersOf(label).sort();
  }

  /**
   * The current text of a memory that had this block's text, {@link WITHDRAWN} where all of them no longer hold; null if there is no such
   * memory. Of several the first by id.
   */
  successorOf(label: Label): Label | null {
    let successor: Label | null = null;
    for (const id of this.holdersOf(label)) {
      const current = this.currentOf(id);
      if (current === undefined || current === label) continue;
      if (current !== WITHDRAWN) return current;
      successor = WITHDRAWN;
    }
    return successor;
  }

  /** The named labels and the current label of every memory that has or had one of them, transitively. */
  withCurrent(named: ReadonlySet<Label>): ReadonlySet<Label> {
    const labels = new Set(named);
    const memories = [...this.#versions.values()];
    for (let size = -1; size !== labels.size; ) {
      size = labels.size;
      for (const versions of memories)
        if (labelsIn(versions).some((label) => labels.has(label))) labels.add(versions.current);
    }
    return labels;
  }

  /** Adds a version of a memory; the first one of a memory is its current one in any case. */
  add(id: MemoryId, label: Label, current: boolean, rendered?: RenderedWords): void {
    this.#hold(id, label, current, rendered);
    this.#dirty.add(id);
  }

  /** Removes a memory. Returns the labels that no other memory has or had. */
  forget(id: MemoryId): ReadonlySet<Label> {
    const gone = new Set<Label>();
    for (const label of this.labelsOf(id)) {
      const holders = this.#holders.get(label);
      if (holders instanceof Set) holders.delete(id);
      else if (holders === id) this.#holders.delete(label);
      if (this.#allHoldersOf(label).length === 0) gone.add(label);
    }
    this.#remove(id);
    return gone;
  }

  /** Removes a block from every memory, and memories that are left without a version. */
  drop(label: Label): void {
    for (const id of this.#allHoldersOf(label)) {
      const versions = this.#versions.get(id);
      versions?.table?.delete(label);
      if (hasNoText(versions?.table ?? NO_VERSIONS)) this.#remove(id);
    }
    this.#holders.delete(label);
  }

  /** Returns all versions of the memories that changed since the last call, and resets them. */
  drain(): MemoryVersion[] {
    const changed = [...this.#dirty].flatMap((memoryId) => this.#rowsOf(memoryId));
    this.#dirty.clear();
    return changed;
  }

  stored(): MemoryVersion[] {
    return [...this.#versions.keys()].flatMap((memoryId) => this.#rowsOf(memoryId));
  }

  #rowsOf(memoryId: MemoryId): MemoryVersion[] {
    const versions = this.#versions.get(memoryId);
    if (versions === undefined) return [];
    return labelsIn(versions).map((label) => {
      const current = label === versions.current;
      const until = current ? this.#untils.get(memoryId) : undefined;
      const found = current && versions.isFound ? { found: true as const } : {};
      const ofRun = current && this.#ofRuns.has(memoryId) ? { ofRun: true as const } : {};
      const row = { memoryId, label, current, ...found, ...ofRun, ...(until === undefined ? {} : { until }) };
      const rendered = this.renderedOf(memoryId, label);
      return rendered === undefined ? row : { ...row, rendered };
    });
  }

  #allHoldersOf(label: Label): MemoryId[] {
    const holders = this.#holders.get(label);
    return typeof holders === "string" ? [holders] : [...(holders ?? [])];
  }

  #hold(id: MemoryId, label: Label, current: boolean, rendered: RenderedWords | undefined): void {
    const versions = this.#versions.get(id);
    if (versions === undefined) this.#versions.set(id, { current: label, rendered, isFound: false, table: null });
    else if (versions.table === null && versions.current === label) versions.rendered = rendered;
    else {
      versions.table ??= new Map([[versions.current, versions.rendered]]);
      versions.table.set(label, rendered);
      if (current) versions.current = label;
    }
    const holders = this.#holders.get(label);
    if (holders instanceof Set) holders.add(id);
    else if (holders !== id) this.#holders.set(label, holders === undefined ? id : new Set([holders, id]));
  }

  /** Whether that was not known. */
  #found(id: MemoryId): boolean {
    const versions = this.#versions.get(id);
    if (versions === undefined || versions.isFound) return false;
    versions.isFound = true;
    return true;
  }

  #remove(id: MemoryId): void {
    this.#versions.delete(id);
    this.#untils.delete(id);
    this.#ofRuns.delete(id);
    // A withdrawn memory has this one beside its texts.
    const withdrawn = this.#holders.get(WITHDRAWN);
    if (withdrawn instanceof Set) withdrawn.delete(id);
    else if (withdrawn === id) this.#holders.delete(WITHDRAWN);
    this.#dirty.delete(id);
  }
}

/** The labels of all versions, in the order in which they came. */
function labelsIn({ current, table }: Versions): readonly Label[] {
  return table === null ? [current] : [...table.keys()];
}

function isIn({ current, table }: Versions, label: Label): boolean {
  return table === null ? label === current : table.has(label);
}

function lengthOf({ runs }: ComparedText): number {
  return runs.reduce((sum, run) => sum + run.length, 0);
}
