import type { Digest, Label, MemoryId } from "../text/ids.js";

/**
 * One unit of external context: one memory at one version of its text (docs/internals/algorithms.md, "The field's words"). Memories with
 * the same text share a block, so a prompt never contains a text twice.
 */
export interface ContextBlock {
  readonly label: Label;
  /** Canonical text, see {@link canonicalText}. */
  readonly text: string;
  readonly textDigest: Digest;
  /** Tokens of the block's rendered line, line break included. */
  readonly tokens: number;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: vertical tab and form feed are line breaks to some readers of a prompt
const LINE_BREAKS = /\r\n|[\r\u000b\u000c\u0085\u2028\u2029]/g;

/**
 * The canonical form of a memory's text, which is compared, stored and rendered: every kind of line break becomes `\n`, unpaired surrogates
 * become U+FFFD, and white space at the ends is removed. Nothing else changes.
 */
export function canonicalText(text: string): string {
  return text.replace(LINE_BREAKS, "\n").toWellFormed().trim();
}

/** A block as stored. */
export interface StoredBlock extends ContextBlock {
  /** The block that superseded this one; null while some memory has this text. */
  supersededBy: Label | null;
}

/** One version of a memory: the block with its text at some time. */
export interface MemoryVersion {
  readonly memoryId: MemoryId;
  readonly label: Label;
  /** Whether this is the memory's current text. */
  readonly current: boolean;
}

/** What changed since the last drain, to be stored in one transaction. */
export interface RegisterChanges {
  readonly blocks: readonly StoredBlock[];
  readonly versions: readonly MemoryVersion[];
  readonly removedBlocks: readonly Label[];
  readonly forgotten: readonly MemoryId[];
}

/** One memory as a search returned it; lists of these are in relevance order, best first. */
export interface RetrievedMemory {
  readonly id: MemoryId;
  /** The source's text, not yet canonical. */
  readonly text: string;
}

/** The versions of a scope's memories: which blocks' texts each memory has or had, and which is its current one. */
export class MemoryVersions {
  /** All versions of each memory; `current` is the label of its current text. */
  readonly #versions = new Map<MemoryId, { current: Label; readonly all: Set<Label> }>();
  /** Memories that have or had each block's text. */
  readonly #holders = new Map<Label, Set<MemoryId>>();
  readonly #dirty = new Set<MemoryId>();

  constructor(stored: readonly MemoryVersion[]) {
    for (const { memoryId, label, current } of stored) this.#hold(memoryId, label, current);
  }

  /** The label of a memory's current text; undefined for an unknown memory. */
  currentOf(id: MemoryId): Label | undefined {
    return this.#versions.get(id)?.current;
  }

  /** Whether a block is the current text of some memory. */
  isCurrent(label: Label): boolean {
    return [...(this.#holders.get(label) ?? [])].some((id) => this.currentOf(id) === label);
  }

  /** The labels of all versions of a memory; empty for an unknown memory. */
  labelsOf(id: MemoryId): ReadonlySet<Label> {
    return this.#versions.get(id)?.all ?? NO_LABELS;
  }

  /** Memories that have or had a block's text, in an order that survives a reload. */
  holdersOf(label: Label): MemoryId[] {
    return [...(this.#holders.get(label) ?? [])].sort();
  }

  /** The current text of a memory that had this block's text; null if there is no such memory. Of several the first by id. */
  successorOf(label: Label): Label | null {
    for (const id of this.holdersOf(label)) {
      const current = this.currentOf(id);
      if (current !== undefined && current !== label) return current;
    }
    return null;
  }

  /** The named labels and the current label of every memory that has or had one of them, transitively. */
  withCurrent(named: ReadonlySet<Label>): ReadonlySet<Label> {
    const labels = new Set(named);
    const memories = [...this.#versions.values()];
    for (let size = -1; size !== labels.size; ) {
      size = labels.size;
      for (const { current, all } of memories) if ([...all].some((label) => labels.has(label))) labels.add(current);
    }
    return labels;
  }

  /** Adds a version of a memory; the first one of a memory is its current one in any case. */
  add(id: MemoryId, label: Label, current: boolean): void {
    this.#hold(id, label, current);
    this.#dirty.add(id);
  }

  /** Removes a memory. Returns the labels that no other memory has or had. */
  forget(id: MemoryId): ReadonlySet<Label> {
    const gone = new Set<Label>();
    for (const label of this.labelsOf(id)) {
      const holders = this.#holders.get(label);
      holders?.delete(id);
      if (holders?.size === 0) gone.add(label);
    }
    this.#remove(id);
    return gone;
  }

  /** Removes a block from every memory, and memories that are left without a version. */
  drop(label: Label): void {
    for (const id of this.#holders.get(label) ?? []) {
      const versions = this.#versions.get(id);
      versions?.all.delete(label);
      if (versions?.all.size === 0) this.#remove(id);
    }
    this.#holders.delete(label);
  }

  /** Returns all versions of the memories that changed since the last call, and resets them. */
  drain(): MemoryVersion[] {
    const changed = [...this.#dirty].flatMap((memoryId) => {
      const current = this.currentOf(memoryId);
      return [...this.labelsOf(memoryId)].map((label) => ({ memoryId, label, current: label === current }));
    });
    this.#dirty.clear();
    return changed;
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

  #remove(id: MemoryId): void {
    this.#versions.delete(id);
    this.#dirty.delete(id);
  }
}

const NO_LABELS: ReadonlySet<Label> = new Set();
