/*
 * blocks: context blocks, one per memory and version of its text, with labels that are never reused.
 * Enters: retrieved memories. Leaves: blocks in relevance order, texts by label, which block supersedes which, what is forgotten; and, if
 * the memory source fails, blocks recalled by the words of the query. Beside them, which blocks a conversation and a scope retrieved before.
 */

import { type InjectedBlock, renderBlock } from "../prompt/section.js";
import { ChangedRows, keptIn } from "../text/collections.js";
import { type Digest, digestOf, type Label, type MemoryId } from "../text/ids.js";
import { type ComparedText, canonicalText, comparedText } from "../text/memory-text.js";
import type { TokenCounter } from "../text/message.js";
import {
  type EndedMemory,
  type RegisterChanges,
  type RenderedMemory,
  type RequestedMemory,
  type Resolution,
  type StoredBlock,
  type StoredRegister,
  WITHDRAWN,
} from "./context-block.js";
import { MemoryVersions } from "./memory-versions.js";

/**
 * The context blocks of one scope: the label of each text, the current text of each memory, and which texts are superseded. Labels count up
 * from 1 and are never reused, even after a block is forgotten.
 */
export class BlockRegister {
  readonly #blocks = new Map<Label, StoredBlock>();
  readonly #byText = new Map<Digest, Label>();
  readonly #memories: MemoryVersions;
  readonly #forgotten: Set<MemoryId>;
  readonly #changes = new ChangedRows<Label>();
  readonly #newlyForgotten = new Set<MemoryId>();
  /** Texts in the form in which they are compared with others, each made when it is first wanted; not stored. */
  readonly #compared = new Map<Label, ComparedText>();
  #nextLabel: number;
  #textLength = 0;
  #currentTokens = 0;
  /** Tokens of lines with labels, counted where prompts have them. */
  readonly #labelledTokens = new Map<Label, number>();

  constructor(
    stored: StoredRegister,
    nextLabel: number,
    private readonly countTokens: TokenCounter,
  ) {
    this.#nextLabel = nextLabel;
    this.#forgotten = new Set(stored.forgotten);
    for (const block of stored.blocks) this.#keep(block);
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
    if (!block.isLabelled) return stored.tokens;
    if (block.replaces.length > 0) return this.countTokens(renderBlock(block, stored.text));
    return keptIn(this.#labelledTokens, block.label, () => this.countTokens(renderBlock(block, stored.text)));
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
  comparedOf = (label: Label): ComparedText =>
    keptIn(this.#compared, label, () => {
      const compared = comparedText(this.textOf(label));
      this.#textLength += lengthOf(compared);
      return compared;
    });

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

  /** Whether a block has the memory's date before its words. */
  isDated(id: MemoryId, label: Label): boolean {
    return this.#memories.isDated(id, label);
  }

  /** The memory's other blocks with the same words, with a date where this one has none or without; newest first. */
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
    for (const [rank, { id, text, dated, end, found, ofRun = false }] of memories.entries()) {
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
        this.#setCurrent(id, block.label, dated === true);
        this.#memories.setUntil(id, end?.until);
        this.#memories.setOfRun(id, ofRun);
        if (found === true) this.#memories.setFound(id);
        if (blocks.has(block.label)) sharing.push(id);
      } else {
        conflicting.push(id);
        this.#memories.add(id, block.label, false, dated === true);
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
      leftOut: [],
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
   * words are still the memory's: a date alone makes nothing outdated.
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
    const { upserted, removed } = this.#changes.drain((label) => ({ ...(this.#blocks.get(label) as StoredBlock) }));
    const forgotten = [...this.#newlyForgotten];
    this.#newlyForgotten.clear();
    return { blocks: upserted, versions: this.#memories.drain(), removedBlocks: removed, forgotten };
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
    const tokens = this.countTokens(renderBlock({ label, replaces: [] }, text));
    const block: StoredBlock = { label, text, textDigest, tokens, supersededBy: null };
    this.#keep(block);
    this.#changes.written(label);
    return block;
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
    this.#changes.removed(label);
    const compared = this.#compared.get(label);
    this.#textLength -= block.text.length + (compared === undefined ? 0 : lengthOf(compared));
    this.#compared.delete(label);
    this.#labelledTokens.delete(label);
    if (block.supersededBy === null) this.#currentTokens -= block.tokens;
  }

  /** Makes the block's text the memory's current one. The memory's old block is superseded if no other memory has it. */
  #setCurrent(id: MemoryId, label: Label, isDated: boolean): void {
    const before = this.#memories.currentOf(id);
    if (before === label && this.#memories.isDated(id, label) === isDated) return;
    this.#memories.add(id, label, true, isDated);
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
    this.#changes.written(block.label);
  }
}

/** Each once. Mostly there is none. */
function distinct(ids: readonly MemoryId[]): readonly MemoryId[] {
  return ids.length < 2 ? ids : [...new Set(ids)];
}

function lengthOf({ runs }: ComparedText): number {
  return runs.reduce((sum, run) => sum + run.length, 0);
}
