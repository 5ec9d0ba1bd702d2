import { append, keptIn } from "../text/collections.js";
import type { Label, MemoryId } from "../text/ids.js";
import { type MemoryVersion, ownWords, WITHDRAWN } from "./context-block.js";

/** Whether a memory has no text: {@link WITHDRAWN} is none. */
export function hasNoText(labels: Iterable<Label>): boolean {
  return [...labels].every((label) => label === WITHDRAWN);
}

interface MemoryFacts {
  /** Whether a search found it. */
  readonly isFound: boolean;
  readonly ofRun: boolean;
  /** Undefined: unknown. */
  readonly origin: string | undefined;
  /** In milliseconds since the epoch; undefined: it holds without end. */
  readonly until: number | undefined;
}

interface Memory {
  current: Label;
  /** In the order in which they came; mostly one. */
  versions: readonly { readonly label: Label; readonly isDated: boolean }[];
  facts: MemoryFacts;
}

const NO_FACTS: MemoryFacts = { isFound: false, ofRun: false, origin: undefined, until: undefined };

/** The versions of a scope's memories, and which is each one's current one. */
export class MemoryVersions {
  readonly #memories = new Map<MemoryId, Memory>();
  /** Memories that have or had each block's text; mostly one. */
  readonly #holders = new Map<Label, MemoryId[]>();
  /** Memories that cease to hold some time. */
  readonly #ending = new Set<MemoryId>();
  readonly #dirty = new Set<MemoryId>();

  constructor(stored: readonly MemoryVersion[]) {
    for (const { memoryId, label, current, dated, found, ofRun, origin, until } of stored) {
      this.add(memoryId, label, current, dated);
      if (current) this.set(memoryId, { isFound: found === true, ofRun: ofRun === true, origin, until });
    }
    this.#dirty.clear();
  }

  /** Adds a version, or changes whether it has a date. A memory's first version is always its current one. */
  add(id: MemoryId, label: Label, current: boolean, isDated = false): void {
    const memory = keptIn(this.#memories, id, () => ({ current: label, versions: [], facts: NO_FACTS }) as Memory);
    const at = memory.versions.findIndex((version) => version.label === label);
    memory.versions = memory.versions.toSpliced(at < 0 ? memory.versions.length : at, 1, { label, isDated });
    if (current) memory.current = label;
    if (current && label === WITHDRAWN) this.set(id, { until: undefined });
    const holders = keptIn(this.#holders, label, () => []);
    if (!holders.includes(id)) holders.push(id);
    this.#dirty.add(id);
  }

  /** Ignores unknown memories. */
  set(id: MemoryId, facts: Partial<MemoryFacts>): void {
    const memory = this.#memories.get(id);
    if (memory === undefined) return;
    const { isFound, ofRun, origin, until } = memory.facts;
    const changed = { isFound, ofRun, origin, until, ...facts };
    const isSame = changed.isFound === isFound && changed.ofRun === ofRun && changed.origin === origin;
    if (isSame && changed.until === until) return;
    memory.facts = changed;
    if (changed.until === undefined) this.#ending.delete(id);
    else this.#ending.add(id);
    this.#dirty.add(id);
  }

  factsOf(id: MemoryId): MemoryFacts {
    return this.#memories.get(id)?.facts ?? NO_FACTS;
  }

  /** The memories that have ceased to hold at `now`. */
  endedAt(now: number): MemoryId[] {
    return [...this.#ending].filter((id) => (this.factsOf(id).until ?? now + 1) <= now);
  }

  currentOf(id: MemoryId): Label | undefined {
    return this.#memories.get(id)?.current;
  }

  isCurrent(label: Label): boolean {
    return this.#holders.get(label)?.some((id) => this.currentOf(id) === label) ?? false;
  }

  /** Empty for an unknown memory. */
  labelsOf(id: MemoryId): readonly Label[] {
    const { versions = [] } = this.#memories.get(id) ?? {};
    return versions.map(({ label }) => label).filter((label) => label !== WITHDRAWN);
  }

  isDated(id: MemoryId, label: Label): boolean {
    const version = this.#memories.get(id)?.versions.find((one) => one.label === label);
    return version?.isDated === true;
  }

  /** Whether two texts of a memory have the same words, one with a date and one without. */
  areSameWords(id: MemoryId, a: Label, b: Label, textOf: (label: Label) => string): boolean {
    const { versions = [] } = this.#memories.get(id) ?? {};
    const [one, other] = [a, b].map((label) => versions.find((version) => version.label === label));
    if (one === undefined || other === undefined || one.isDated === other.isDated) return false;
    return ownWords(textOf(a), one.isDated) === ownWords(textOf(b), other.isDated);
  }

  /** Memories that have or had a block's text, in an order that survives a reload. */
  holdersOf(label: Label): readonly MemoryId[] {
    return (this.#holders.get(label) ?? []).toSorted();
  }

  /** Memories whose current text is this block's, likewise. */
  currentHoldersOf(label: Label): readonly MemoryId[] {
    return this.holdersOf(label).filter((id) => this.currentOf(id) === label);
  }

  /** The current text of a memory that had this block's text, the first by id. {@link WITHDRAWN} if none holds; null if there is none. */
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
    for (let size = -1; size !== labels.size; ) {
      size = labels.size;
      for (const { current, versions } of this.#memories.values())
        if (versions.some(({ label }) => labels.has(label))) labels.add(current);
    }
    return labels;
  }

  /** Returns the labels that no other memory has or had. */
  forget(id: MemoryId): ReadonlySet<Label> {
    const labels = this.labelsOf(id);
    this.#remove(id);
    return new Set(labels.filter((label) => this.holdersOf(label).length === 0));
  }

  /** Removes a block, and memories that are left without a version. */
  drop(label: Label): void {
    for (const id of this.holdersOf(label)) {
      const memory = this.#memories.get(id);
      if (memory === undefined) continue;
      memory.versions = memory.versions.filter((version) => version.label !== label);
      if (hasNoText(memory.versions.map((version) => version.label))) this.#remove(id);
    }
    this.#holders.delete(label);
  }

  /** All versions of the memories that changed since the last call. */
  drain(): MemoryVersion[] {
    const changed: MemoryVersion[] = [];
    for (const memoryId of this.#dirty) append(changed, this.#rowsOf(memoryId));
    this.#dirty.clear();
    return changed;
  }

  stored(): MemoryVersion[] {
    return [...this.#memories.keys()].flatMap((memoryId) => this.#rowsOf(memoryId));
  }

  #rowsOf(memoryId: MemoryId): MemoryVersion[] {
    const memory = this.#memories.get(memoryId);
    if (memory === undefined) return [];
    const { isFound, ofRun, origin, until } = memory.facts;
    const facts = {
      ...(isFound && { found: true as const }),
      ...(ofRun && { ofRun: true as const }),
      ...(origin !== undefined && { origin }),
      ...(until !== undefined && { until }),
    };
    return memory.versions.map(({ label, isDated }) => {
      const current = label === memory.current;
      return { memoryId, label, current, ...(isDated && { dated: true as const }), ...(current && facts) };
    });
  }

  #remove(id: MemoryId): void {
    for (const { label } of this.#memories.get(id)?.versions ?? []) {
      const others = this.#holders.get(label)?.filter((other) => other !== id) ?? [];
      if (others.length > 0) this.#holders.set(label, others);
      else this.#holders.delete(label);
    }
    this.#memories.delete(id);
    this.#ending.delete(id);
    this.#dirty.delete(id);
  }
}
