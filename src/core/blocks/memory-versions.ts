import type { Label, MemoryId } from "../text/ids.js";
import { type MemoryVersion, ownWords, type RenderedWords } from "./context-block.js";

/** The versions of a scope's memories: which blocks' texts each memory has or had, and which is its current one. */
export class MemoryVersions {
  /** All versions of each memory, with where its words stand in each; `current` is the label of its current text. */
  readonly #versions = new Map<MemoryId, { current: Label; readonly all: Map<Label, RenderedWords | undefined> }>();
  /** Memories that have or had each block's text. */
  readonly #holders = new Map<Label, Set<MemoryId>>();
  readonly #dirty = new Set<MemoryId>();

  constructor(stored: readonly MemoryVersion[]) {
    for (const { memoryId, label, current, rendered } of stored) this.#hold(memoryId, label, current, rendered);
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
  labelsOf(id: MemoryId): readonly Label[] {
    return [...(this.#versions.get(id)?.all.keys() ?? [])];
  }

  /** Where a memory's own words stand in a block's text; undefined: they are all of it. */
  renderedOf(id: MemoryId, label: Label): RenderedWords | undefined {
    return this.#versions.get(id)?.all.get(label);
  }

  /** Whether a memory's own words stand there in a block's text. */
  isRenderedAs(id: MemoryId, label: Label, rendered: RenderedWords | undefined): boolean {
    const known = this.renderedOf(id, label);
    return (
      known?.template === rendered?.template && known?.start === rendered?.start && known?.length === rendered?.length
    );
  }

  /** Whether two texts of a memory have the same words, and only their block templates differ. */
  areSameWords(id: MemoryId, a: Label, b: Label, textOf: (label: Label) => string): boolean {
    const all = this.#versions.get(id)?.all;
    if (all === undefined || !all.has(a) || !all.has(b)) return false;
    const [inA, inB] = [all.get(a), all.get(b)];
    return inA?.template !== inB?.template && ownWords(textOf(a), inA) === ownWords(textOf(b), inB);
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
      for (const { current, all } of memories)
        if ([...all.keys()].some((label) => labels.has(label))) labels.add(current);
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
    const changed = [...this.#dirty].flatMap((memoryId) => this.#rowsOf(memoryId));
    this.#dirty.clear();
    return changed;
  }

  /** All versions of all memories, as stored. */
  stored(): MemoryVersion[] {
    return [...this.#versions.keys()].flatMap((memoryId) => this.#rowsOf(memoryId));
  }

  #rowsOf(memoryId: MemoryId): MemoryVersion[] {
    const { current, all } = this.#versions.get(memoryId) ?? { current: undefined, all: new Map<Label, undefined>() };
    const rows: MemoryVersion[] = [];
    for (const [label, rendered] of all)
      rows.push({ memoryId, label, current: label === current, ...(rendered === undefined ? {} : { rendered }) });
    return rows;
  }

  #hold(id: MemoryId, label: Label, current: boolean, rendered: RenderedWords | undefined): void {
    const versions = this.#versions.get(id);
    if (versions === undefined) this.#versions.set(id, { current: label, all: new Map([[label, rendered]]) });
    else {
      versions.all.set(label, rendered);
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
