/* blocks: one per memory and version of its text. Enters: retrieved memories. Leaves: blocks by relevance, and what they supersede. */

import { type InjectedBlock, renderBlock } from "../prompt/section.js";
import { ChangedRows, keptIn } from "../text/collections.js";
import type { Label, MemoryId } from "../text/ids.js";
import { type ComparedText, canonicalText, comparedText } from "../text/memory-text.js";
import type { TokenCounter } from "../text/message.js";
import {
  type EndedMemory,
  ownWords,
  type RegisterChanges,
  type RenderedMemory,
  type RequestedMemory,
  type Resolution,
  type StoredBlock,
  type StoredRegister,
  WITHDRAWN,
} from "./context-block.js";
import { MemoryVersions } from "./memory-versions.js";

/** The context blocks of one scope. Labels count up from 1 and are never reused, even after a block is forgotten. */
export class BlockRegister {
  readonly #blocks = new Map<Label, StoredBlock>();
  readonly #byText = new Map<string, Label>();
  readonly memories: MemoryVersions;
  readonly #forgotten: Set<MemoryId>;
  readonly #changes = new ChangedRows<Label>();
  readonly #newlyForgotten = new Set<MemoryId>();
  /** Texts in the form in which they are compared with others. Made when first needed; not stored. */
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
    /** In lower case. */
    private readonly untrustedOrigins: ReadonlySet<string> = new Set(),
  ) {
    this.#nextLabel = nextLabel;
    this.#forgotten = new Set(stored.forgotten);
    for (const block of stored.blocks) this.#keep(block);
    this.memories = new MemoryVersions(stored.versions);
  }

  /** The label of the next new block; stored, so that labels are never reused. */
  get nextLabel(): number {
    return this.#nextLabel;
  }

  get size(): number {
    return this.#blocks.size;
  }

  /** Characters of all texts and of their compared forms, for the bound on memory. */
  get textLength(): number {
    return this.#textLength;
  }

  tokensOf(labels: Iterable<Label>): number {
    let tokens = 0;
    for (const label of labels) tokens += this.get(label)?.tokens ?? 0;
    return tokens;
  }

  /** Maintained incrementally: every request with a budget reads it. */
  get currentTokens(): number {
    return this.#currentTokens;
  }

  get(label: Label): StoredBlock | undefined {
    return this.#blocks.get(label);
  }

  withText(text: string): Label | undefined {
    return this.#byText.get(text);
  }

  /** Throws for an unknown label: a prompt without its text would be incomplete. */
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
    return keptIn(this.#labelledTokens, block.label, () => this.countTokens(renderBlock(block, stored.text)));
  }

  /** Blocks that are some memory's current text, in label order. */
  *current(): Iterable<StoredBlock> {
    for (const block of this.#blocks.values()) if (block.supersededBy === null) yield block;
  }

  /** A memory with this block's text, preferably as its current one; the first by id. */
  memoryOf(label: Label): MemoryId | undefined {
    return this.memories.currentHoldersOf(label)[0] ?? this.memories.holdersOf(label)[0];
  }

  /** Of a text from an untrusted origin without its date, so that no date makes it another text. */
  comparedOf = (label: Label): ComparedText => {
    if (this.isUntrusted(label)) return comparedText(this.wordsOf(label));
    return keptIn(this.#compared, label, () => {
      const compared = comparedText(this.textOf(label));
      this.#textLength += lengthOf(compared);
      return compared;
    });
  };

  /** A block's text without a date in front. */
  wordsOf(label: Label): string {
    const isDated = this.memories.holdersOf(label).some((id) => this.memories.isDated(id, label));
    return ownWords(this.textOf(label), isDated);
  }

  /** Whether only memories of untrusted origins have this text: it is given at most once in a prompt, in a list, and is never carried over. */
  isUntrusted(label: Label): boolean {
    if (this.untrustedOrigins.size === 0) return false;
    const current = this.memories.currentHoldersOf(label);
    const holders = current.length > 0 ? current : this.memories.holdersOf(label);
    const origins = holders.map((id) => this.memories.factsOf(id).origin);
    return origins.length > 0 && origins.every((origin) => origin !== undefined && this.untrustedOrigins.has(origin));
  }

  /** Memories that a search found and whose current text is this block's. */
  foundWith(label: Label): readonly MemoryId[] {
    return this.memories.currentHoldersOf(label).filter((id) => this.memories.factsOf(id).isFound);
  }

  /** A memory with this current text that belongs to no run. */
  commonWith(label: Label): MemoryId | undefined {
    return this.memories.currentHoldersOf(label).find((id) => !this.memories.factsOf(id).ofRun);
  }

  textsOf(id: MemoryId): ReadonlyMap<Label, string> {
    return new Map(this.memories.labelsOf(id).map((label) => [label, this.textOf(label)]));
  }

  /** The memory's other blocks with the same words, newest first: only their dates differ. */
  sameWordsAs(id: MemoryId, label: Label): readonly Label[] {
    const others = this.memories.labelsOf(id).filter((other) => other !== label);
    return others.filter((other) => this.memories.areSameWords(id, other, label, this.textOf)).sort((a, b) => b - a);
  }

  /** Resolves retrieved memories, in relevance order, to blocks. A changed text supersedes the old one. */
  resolve(memories: readonly RenderedMemory[]): Resolution {
    const blocks = new Map<Label, StoredBlock>();
    const requested: RequestedMemory[] = [];
    const seen = new Map<MemoryId, Label>();
    const repeated: MemoryId[] = [];
    const sharing: MemoryId[] = [];
    const conflicting: MemoryId[] = [];
    const forgotten: MemoryId[] = [];
    for (const [rank, { id, text, dated, end, found, ofRun = false, origin, writtenAt }] of memories.entries()) {
      if (this.#forgotten.has(id)) {
        forgotten.push(id);
        continue;
      }
      const block = this.#blockFor(id, canonicalText(text));
      const before = seen.get(id);
      if (before === undefined) this.#setCurrent(id, block.label, dated === true);
      if (origin !== undefined) this.memories.set(id, { origin });
      if (before === block.label) {
        repeated.push(id);
        continue;
      }
      if (before === undefined) {
        seen.set(id, block.label);
        this.memories.set(id, { until: end?.until, ofRun, ...(found && { isFound: true }) });
        if (blocks.has(block.label)) sharing.push(id);
      } else {
        conflicting.push(id);
        this.memories.add(id, block.label, false, dated === true);
        this.#settle(block, before);
        if (requested.some((entry) => entry.memoryId === id && entry.label === block.label)) continue;
      }
      requested.push({ memoryId: id, label: block.label, rank, ...(writtenAt !== undefined && { writtenAt }) });
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

  /** Supersedes the blocks of memories that no longer hold. A later retrieval makes them hold again. Ignores unknown memories. */
  withdraw(ended: readonly EndedMemory[]): void {
    for (const { id, replacedBy } of ended) {
      const before = this.memories.currentOf(id);
      if (before === undefined) continue;
      if (before !== WITHDRAWN) this.memories.add(id, WITHDRAWN, true);
      const successor = replacedBy === undefined ? undefined : this.memories.currentOf(replacedBy);
      for (const label of this.memories.labelsOf(id)) {
        const block = this.#blocks.get(label) as StoredBlock;
        if (label === before || (block.supersededBy === WITHDRAWN && successor !== label))
          this.#settle(block, successor ?? WITHDRAWN);
      }
    }
  }

  /** Withdraws the memories that cease to hold by `now` (milliseconds since the epoch). */
  expire(now: number): void {
    this.withdraw(this.memories.endedAt(now).map((id) => ({ id })));
  }

  setUntil(id: MemoryId, until: number | undefined): void {
    if (this.memories.currentOf(id) !== WITHDRAWN) this.memories.set(id, { until });
  }

  /** The newest block of a superseded block's chain, or {@link WITHDRAWN}. Null: it is current, or a memory's words with another date. */
  successor(label: Label): Label | null {
    let at = this.#blocks.get(label)?.supersededBy ?? null;
    for (let next = at; next !== null; next = this.#blocks.get(next)?.supersededBy ?? null) at = next;
    if (at === null || at === WITHDRAWN) return at;
    const end = at;
    const hasSameWords = (id: MemoryId) => this.memories.areSameWords(id, label, end, this.textOf);
    return this.memories.holdersOf(label).some(hasSameWords) ? null : at;
  }

  /** Forgets every version of a memory's text. Returns the labels whose text no other memory has. */
  forget(id: MemoryId): ReadonlySet<Label> {
    this.#forgotten.add(id);
    this.#newlyForgotten.add(id);
    const gone = this.memories.forget(id);
    for (const label of gone) this.#drop(label);
    for (const block of this.#blocks.values()) {
      const { label, supersededBy } = block;
      if (supersededBy === null || supersededBy === WITHDRAWN || gone.has(supersededBy))
        this.#settle(block, this.memories.successorOf(label));
    }
    return gone;
  }

  /** Drops all blocks but the named ones and their memories' current ones; gives the dropped labels. A text may return under a new label. */
  keepOnly(named: ReadonlySet<Label>): ReadonlySet<Label> {
    const kept = this.memories.withCurrent(named);
    const gone = new Set([...this.#blocks.keys()].filter((label) => !kept.has(label)));
    for (const label of gone) this.#drop(label);
    for (const block of this.#blocks.values()) {
      if (block.supersededBy !== null && gone.has(block.supersededBy))
        this.#settle(block, this.memories.successorOf(block.label));
    }
    return gone;
  }

  /** Returns and resets what changed since the last call. */
  drain(): RegisterChanges {
    const { upserted, removed } = this.#changes.drain((label) => ({ ...(this.#blocks.get(label) as StoredBlock) }));
    const forgotten = [...this.#newlyForgotten];
    this.#newlyForgotten.clear();
    return { blocks: upserted, versions: this.memories.drain(), removedBlocks: removed, forgotten };
  }

  /** Everything as stored; later changes do not reach it. */
  stored(): StoredRegister {
    return {
      blocks: Array.from(this.#blocks.values(), (block) => ({ ...block })),
      versions: this.memories.stored(),
      forgotten: [...this.#forgotten],
    };
  }

  #blockFor(id: MemoryId, text: string): StoredBlock {
    const current = this.memories.currentOf(id);
    const unchanged = current === undefined ? undefined : this.#blocks.get(current);
    if (unchanged?.text === text) return unchanged;
    const known = this.#byText.get(text);
    if (known !== undefined) return this.#blocks.get(known) as StoredBlock;
    const label = this.#nextLabel++ as Label;
    const tokens = this.countTokens(renderBlock({ label }, text));
    const block: StoredBlock = { label, text, tokens, supersededBy: null };
    this.#keep(block);
    this.#changes.written(label);
    return block;
  }

  #keep(block: StoredBlock): void {
    this.#blocks.set(block.label, block);
    this.#byText.set(block.text, block.label);
    this.#textLength += block.text.length;
    if (block.supersededBy === null) this.#currentTokens += block.tokens;
  }

  #drop(label: Label): void {
    const block = this.#blocks.get(label);
    if (block === undefined) return;
    this.#blocks.delete(label);
    this.#byText.delete(block.text);
    this.memories.drop(label);
    this.#changes.removed(label);
    const compared = this.#compared.get(label);
    this.#textLength -= block.text.length + (compared === undefined ? 0 : lengthOf(compared));
    this.#compared.delete(label);
    this.#labelledTokens.delete(label);
    if (block.supersededBy === null) this.#currentTokens -= block.tokens;
  }

  /** Makes the block's text the memory's current one. */
  #setCurrent(id: MemoryId, label: Label, isDated: boolean): void {
    const before = this.memories.currentOf(id);
    if (before === label && this.memories.isDated(id, label) === isDated) return;
    this.memories.add(id, label, true, isDated);
    if (before === label) return;
    this.#settle(this.#blocks.get(label) as StoredBlock, null);
    const old = before === undefined ? undefined : this.#blocks.get(before);
    if (old !== undefined) this.#settle(old, label);
  }

  /** A block is superseded, by `successor`, exactly while it is no memory's current text. */
  #settle(block: StoredBlock, successor: Label | null): void {
    const supersededBy = this.memories.isCurrent(block.label) ? null : successor;
    if (block.supersededBy === supersededBy) return;
    if (block.supersededBy === null) this.#currentTokens -= block.tokens;
    if (supersededBy === null) this.#currentTokens += block.tokens;
    block.supersededBy = supersededBy;
    this.#changes.written(block.label);
  }
}

function distinct(ids: readonly MemoryId[]): readonly MemoryId[] {
  return ids.length < 2 ? ids : [...new Set(ids)];
}

function lengthOf({ runs }: ComparedText): number {
  return runs.reduce((sum, run) => sum + run.length, 0);
}
