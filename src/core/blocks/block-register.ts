/*
 * blocks: context blocks, one per memory and version of its text, with labels that are never reused.
 * Enters: retrieved memories. Leaves: blocks in relevance order, their texts by label, what supersedes what, what is forgotten, and, where
 * the memory source fails, blocks recalled by the words of the query.
 */

import { BY_LIST, BY_SHAPES, type Escaping, escapingOf, isWrittenAlike } from "../escaping/escaping.js";
import type { InjectedBlock } from "../prompt/injection.js";
import { renderBlock } from "../prompt/rendering.js";
import { type Digest, digestOf, type Label, type MemoryId } from "../text/ids.js";
import type { TokenCounter } from "../text/token-counter.js";
import {
  canonicalText,
  type MemoryVersion,
  type RegisterChanges,
  type RetrievedMemory,
  type StoredBlock,
} from "./context-block.js";

/** One distinct memory of a request and the block that holds its text. */
export interface RequestedMemory {
  readonly memoryId: MemoryId;
  readonly label: Label;
  /** Place in the retrieval order, from 0. */
  readonly rank: number;
}

/** What a request's memories come to. */
export interface Resolution {
  /** Distinct blocks, in relevance order. */
  readonly blocks: readonly StoredBlock[];
  /** Every distinct memory asked for, in relevance order; several may share a block. */
  readonly memories: readonly RequestedMemory[];
  /** Memories listed more than once with the same text. */
  readonly repeated: readonly MemoryId[];
  /** Memories whose text another memory of the request has too. */
  readonly sharing: readonly MemoryId[];
  /** Memories listed with two different texts; the better ranked counts as current, both are in the prompt. */
  readonly conflicting: readonly MemoryId[];
  /** Memories left out because the caller had them forgotten. */
  readonly forgotten: readonly MemoryId[];
}

/**
 * The context blocks of one scope: which text has which label, which memory has which text now, and which texts were superseded.
 * Labels count up from 1 and are never reused, also not after a block was forgotten.
 */
export class BlockRegister {
  readonly #blocks = new Map<Label, StoredBlock>();
  readonly #byText = new Map<Digest, Label>();
  /** All versions of each memory; `current` is the label of its text now. */
  readonly #versions = new Map<MemoryId, { current: Label; readonly all: Set<Label> }>();
  /** Memories that have, or had, each block's text. */
  readonly #holders = new Map<Label, Set<MemoryId>>();
  readonly #forgotten: Set<MemoryId>;
  readonly #dirtyBlocks = new Set<Label>();
  readonly #dirtyMemories = new Set<MemoryId>();
  readonly #removedBlocks = new Set<Label>();
  readonly #newlyForgotten = new Set<MemoryId>();
  /** Of blocks in which a configured marker stands. */
  readonly #escapings = new Map<Label, Escaping>();
  #nextLabel: number;
  #textLength = 0;
  #currentTokens = 0;

  constructor(
    stored: {
      readonly blocks: readonly StoredBlock[];
      readonly versions: readonly MemoryVersion[];
      readonly forgotten: readonly MemoryId[];
    },
    nextLabel: number,
    private readonly countTokens: TokenCounter,
    /** Texts that are escaped wherever they stand in a memory, by configuration. */
    private readonly markers: readonly string[] = [],
  ) {
    this.#nextLabel = nextLabel;
    this.#forgotten = new Set(stored.forgotten);
    for (const block of stored.blocks) {
      const { label, text } = block;
      this.#escape(label, text);
      // An engine's own counter is exact, and what was stored may be another one's count; or that of a text that was escaped otherwise.
      const isAsCounted = countTokens.template === undefined && isWrittenAlike(text, BY_LIST, this.#escapingOf(label));
      this.#keep({ ...block, tokens: isAsCounted ? block.tokens : this.#tokensOf(label, text) });
    }
    for (const version of stored.versions) this.#hold(version.memoryId, version.label, version.current);
  }

  /** The label that the next new block gets; stored, so that labels are never reused. */
  get nextLabel(): number {
    return this.#nextLabel;
  }

  get size(): number {
    return this.#blocks.size;
  }

  /** Characters of text held, for the bound on memory. */
  get textLength(): number {
    return this.#textLength;
  }

  /** Tokens of these blocks' lines; none for one that is gone. */
  tokensOf(labels: Iterable<Label>): number {
    let tokens = 0;
    for (const label of labels) tokens += this.get(label)?.tokens ?? 0;
    return tokens;
  }

  /** Tokens of all blocks that some memory has now. Kept as blocks change: every request with a budget asks for it. */
  get currentTokens(): number {
    return this.#currentTokens;
  }

  get(label: Label): StoredBlock | undefined {
    return this.#blocks.get(label);
  }

  /** The block with this text; undefined where none has it. */
  withText(textDigest: Digest): Label | undefined {
    return this.#byText.get(textDigest);
  }

  /** The text of a block. Throws for a label that is not there: a prompt without it would break a promise. */
  textOf = (label: Label): string => {
    const block = this.#blocks.get(label);
    if (block === undefined) throw new Error(`block [${label}] is not in the register`);
    return block.text;
  };

  /** A block as a turn injects it now. */
  injected(label: Label, replaces: readonly Label[]): InjectedBlock {
    const escaping = this.#escapings.get(label);
    return escaping === undefined ? { label, replaces } : { label, replaces, escaping };
  }

  /** Tokens of a block's line as a turn injected it; none for one whose text is gone. */
  lineTokens(block: InjectedBlock): number {
    const stored = this.#blocks.get(block.label);
    if (stored === undefined) return 0;
    const own = this.#escapingOf(block.label);
    const { replaces, escaping = BY_SHAPES } = block;
    if (replaces.length === 0 && (escaping === own || isWrittenAlike(stored.text, escaping, own))) return stored.tokens;
    return this.countTokens(renderBlock(block, stored.text));
  }

  /** Blocks that some memory has now, in label order. */
  *current(): Iterable<StoredBlock> {
    for (const block of this.#blocks.values()) if (block.supersededBy === null) yield block;
  }

  /** A memory whose text is this block's, preferably now; of several the first by id. */
  memoryOf(label: Label): MemoryId | undefined {
    const holders = this.#holdersOf(label);
    return holders.find((id) => this.#versions.get(id)?.current === label) ?? holders[0];
  }

  /** The texts that a memory has, or had. */
  textsOf(id: MemoryId): ReadonlyMap<Label, string> {
    return new Map([...(this.#versions.get(id)?.all ?? [])].map((label) => [label, this.textOf(label)]));
  }

  /** Takes in what a search returned: new texts become blocks, changed texts supersede. `memories` is in relevance order. */
  resolve(memories: readonly RetrievedMemory[]): Resolution {
    const blocks = new Map<Label, StoredBlock>();
    const requested: RequestedMemory[] = [];
    const seen = new Map<MemoryId, Label>();
    const repeated = new Set<MemoryId>();
    const sharing = new Set<MemoryId>();
    const conflicting = new Set<MemoryId>();
    const forgotten = new Set<MemoryId>();
    for (const [rank, { id, text }] of memories.entries()) {
      if (this.#forgotten.has(id)) {
        forgotten.add(id);
        continue;
      }
      const block = this.#blockFor(id, canonicalText(text));
      const before = seen.get(id);
      if (before === block.label) {
        repeated.add(id);
        continue;
      }
      if (before === undefined) {
        seen.set(id, block.label);
        this.#setCurrent(id, block.label);
        if (blocks.has(block.label)) sharing.add(id);
      } else {
        conflicting.add(id);
        this.#hold(id, block.label, false);
        this.#dirtyMemories.add(id);
        this.#settle(block, before);
        if (requested.some((entry) => entry.memoryId === id && entry.label === block.label)) continue;
      }
      requested.push({ memoryId: id, label: block.label, rank });
      blocks.set(block.label, block);
    }
    return {
      blocks: [...blocks.values()],
      memories: requested,
      repeated: [...repeated],
      sharing: [...sharing],
      conflicting: [...conflicting],
      forgotten: [...forgotten],
    };
  }

  /** The block that has taken a superseded block's place, at the end of the chain; null for a block that is current. */
  successor(label: Label): Label | null {
    let at = this.#blocks.get(label)?.supersededBy ?? null;
    for (let next = at; next !== null; next = this.#blocks.get(next)?.supersededBy ?? null) at = next;
    return at;
  }

  /** Forgets a memory for good, at every version of its text. Returns the labels whose text is gone (no other memory has it). */
  forget(id: MemoryId): ReadonlySet<Label> {
    this.#forgotten.add(id);
    this.#newlyForgotten.add(id);
    const gone = new Set<Label>();
    for (const label of this.#versions.get(id)?.all ?? []) {
      const holders = this.#holders.get(label);
      holders?.delete(id);
      if (holders?.size === 0) gone.add(label);
    }
    this.#versions.delete(id);
    this.#dirtyMemories.delete(id);
    for (const label of gone) this.#drop(label);
    for (const block of this.#blocks.values()) {
      const { label, supersededBy } = block;
      if (supersededBy === null || gone.has(supersededBy)) this.#settle(block, this.#currentOfAHolder(label));
    }
    return gone;
  }

  /**
   * Drops blocks that are not named, and not needed by one that is: the current text of a memory stays while another text of it does, so
   * that an old text never passes for current. What is dropped may come back, with a new label. Returns the labels that went.
   */
  keepOnly(named: ReadonlySet<Label>): ReadonlySet<Label> {
    const kept = new Set(named);
    const memories = [...this.#versions.values()];
    for (let size = -1; size !== kept.size; ) {
      size = kept.size;
      for (const { current, all } of memories) if ([...all].some((label) => kept.has(label))) kept.add(current);
    }
    const gone = new Set([...this.#blocks.keys()].filter((label) => !kept.has(label)));
    for (const label of gone) {
      for (const id of this.#holdersOf(label)) {
        const versions = this.#versions.get(id);
        versions?.all.delete(label);
        if (versions?.all.size === 0) {
          this.#versions.delete(id);
          this.#dirtyMemories.delete(id);
        }
      }
      this.#drop(label);
    }
    for (const block of this.#blocks.values()) {
      if (block.supersededBy !== null && gone.has(block.supersededBy))
        this.#settle(block, this.#currentOfAHolder(block.label));
    }
    return gone;
  }

  /** Hands over what changed since the last call. */
  drain(): RegisterChanges {
    const changes: RegisterChanges = {
      blocks: [...this.#dirtyBlocks].map((label) => ({ ...(this.#blocks.get(label) as StoredBlock) })),
      versions: [...this.#dirtyMemories].flatMap((memoryId) => {
        const versions = this.#versions.get(memoryId);
        return [...(versions?.all ?? [])].map((label) => ({ memoryId, label, current: label === versions?.current }));
      }),
      removedBlocks: [...this.#removedBlocks],
      forgotten: [...this.#newlyForgotten],
    };
    for (const set of [this.#dirtyBlocks, this.#dirtyMemories, this.#removedBlocks, this.#newlyForgotten]) set.clear();
    return changes;
  }

  #blockFor(id: MemoryId, text: string): StoredBlock {
    const current = this.#versions.get(id)?.current;
    const unchanged = current === undefined ? undefined : this.#blocks.get(current);
    if (unchanged?.text === text) return unchanged;
    const textDigest = digestOf(text);
    const known = this.#byText.get(textDigest);
    if (known !== undefined) return this.#blocks.get(known) as StoredBlock;
    const label = this.#nextLabel++ as Label;
    this.#escape(label, text);
    const block: StoredBlock = { label, text, textDigest, tokens: this.#tokensOf(label, text), supersededBy: null };
    this.#keep(block);
    this.#dirtyBlocks.add(label);
    return block;
  }

  #tokensOf(label: Label, text: string): number {
    return this.countTokens(renderBlock(this.injected(label, []), text));
  }

  #escapingOf(label: Label): Escaping {
    return this.#escapings.get(label) ?? BY_SHAPES;
  }

  #escape(label: Label, text: string): void {
    const escaping = escapingOf(text, this.markers);
    if (escaping !== BY_SHAPES) this.#escapings.set(label, escaping);
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
    this.#holders.delete(label);
    this.#escapings.delete(label);
    this.#dirtyBlocks.delete(label);
    this.#removedBlocks.add(label);
    this.#textLength -= block.text.length;
    if (block.supersededBy === null) this.#currentTokens -= block.tokens;
  }

  #hold(id: MemoryId, label: Label, current: boolean): void {
    const versions = this.#versions.get(id);
    if (versions === undefined) this.#versions.set(id, { current: label, all: new Set([label]) });
    else {
      versions.all.add(label);
      if (current) versions.current = label;
    }
    const holders = this.#holders.get(label);
    if (holders === undefined) this.#holders.set(label, new Set([id]));
    else holders.add(id);
  }

  /** The memory's text is now this block's; a block that no memory has any more is superseded by it. */
  #setCurrent(id: MemoryId, label: Label): void {
    const before = this.#versions.get(id)?.current;
    if (before === label) return;
    this.#hold(id, label, true);
    this.#dirtyMemories.add(id);
    this.#settle(this.#blocks.get(label) as StoredBlock, null);
    const old = before === undefined ? undefined : this.#blocks.get(before);
    if (old !== undefined) this.#settle(old, label);
  }

  /** Memories that have, or had, a block's text, in an order that a reload keeps. */
  #holdersOf(label: Label): MemoryId[] {
    return [...(this.#holders.get(label) ?? [])].sort();
  }

  #currentOfAHolder(label: Label): Label | null {
    for (const id of this.#holdersOf(label)) {
      const current = this.#versions.get(id)?.current;
      if (current !== undefined && current !== label) return current;
    }
    return null;
  }

  /** A block is superseded, by `successor`, exactly while no memory has its text. */
  #settle(block: StoredBlock, successor: Label | null): void {
    const holders = [...(this.#holders.get(block.label) ?? [])];
    const isHeld = holders.some((id) => this.#versions.get(id)?.current === block.label);
    const supersededBy = isHeld ? null : successor;
    if (block.supersededBy === supersededBy) return;
    if (block.supersededBy === null) this.#currentTokens -= block.tokens;
    if (supersededBy === null) this.#currentTokens += block.tokens;
    block.supersededBy = supersededBy;
    this.#dirtyBlocks.add(block.label);
  }
}
