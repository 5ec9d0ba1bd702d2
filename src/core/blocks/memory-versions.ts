import type { Label, MemoryId } from "../text/ids.js";
import { type MemoryVersion, ownWords, WITHDRAWN } from "./context-block.js";

const NO_VERSIONS: ReadonlyMap<Label, unknown> = new Map();

/** Whether a memory has no text: {@link WITHDRAWN} is none. */
export function hasNoText(versions: ReadonlyMap<Label, unknown>): boolean {
  return versions.size === 0 || (versions.size === 1 && versions.has(WITHDRAWN));
}

/** The versions of one memory. Most have one, for which a table would take ten times the memory. */
interface Versions {
  current: Label;
  /** Whether the only version has a date; unused with a table. */
  isDated: boolean;
  isFound: boolean;
  /** All versions in order, and which have a date; null while there is one. */
  table: Map<Label, boolean> | null;
}

/** The versions of a scope's memories, and which is each one's current one. */
export class MemoryVersions {
  readonly #versions = new Map<MemoryId, Versions>();
  /** Memories that have or had each block's text; mostly one. */
  readonly #holders = new Map<Label, MemoryId | Set<MemoryId>>();
  readonly #dirty = new Set<MemoryId>();
  /** In milliseconds since the epoch. Most memories have none. */
  readonly #untils = new Map<MemoryId, number>();
  readonly #ofRuns = new Set<MemoryId>();
  /** Of memories that name one. */
  readonly #origins = new Map<MemoryId, string>();

  constructor(stored: readonly MemoryVersion[]) {
    for (const { memoryId, label, current, dated = false, found, ofRun, origin, until } of stored) {
      this.#hold(memoryId, label, current, dated);
      if (found === true) this.#found(memoryId);
      if (ofRun === true) this.#ofRuns.add(memoryId);
      if (origin !== undefined) this.#origins.set(memoryId, origin);
      if (until !== undefined) this.#untils.set(memoryId, until);
    }
  }

  originOf(id: MemoryId): string | undefined {
    return this.#origins.get(id);
  }

  setOrigin(id: MemoryId, origin: string): void {
    if (this.#origins.get(id) === origin) return;
    this.#origins.set(id, origin);
    this.#dirty.add(id);
  }

  setOfRun(id: MemoryId, ofRun: boolean): void {
    if (this.#ofRuns.has(id) === ofRun) return;
    if (ofRun) this.#ofRuns.add(id);
    else this.#ofRuns.delete(id);
    this.#dirty.add(id);
  }

  get hasRuns(): boolean {
    return this.#ofRuns.size > 0;
  }

  commonWith(label: Label): MemoryId | undefined {
    return this.holdersOf(label).find((id) => this.currentOf(id) === label && !this.#ofRuns.has(id));
  }

  setFound(id: MemoryId): void {
    if (this.#found(id)) this.#dirty.add(id);
  }

  /** Memories that a search found and whose current text is this block's. */
  foundWith(label: Label): MemoryId[] {
    return this.holdersOf(label).filter((id) => {
      const versions = this.#versions.get(id);
      return versions?.isFound === true && versions.current === label;
    });
  }

  untilOf(id: MemoryId): number | undefined {
    return this.#untils.get(id);
  }

  /** The memories that have ceased to hold at `now`. */
  endedAt(now: number): MemoryId[] {
    const ended: MemoryId[] = [];
    for (const [id, until] of this.#untils) if (until <= now) ended.push(id);
    return ended;
  }

  /** Undefined: it holds without end. */
  setUntil(id: MemoryId, until: number | undefined): void {
    if (this.#untils.get(id) === until) return;
    if (until === undefined) this.#untils.delete(id);
    else this.#untils.set(id, until);
    this.#dirty.add(id);
  }

  currentOf(id: MemoryId): Label | undefined {
    return this.#versions.get(id)?.current;
  }

  isCurrent(label: Label): boolean {
    return this.#allHoldersOf(label).some((id) => this.currentOf(id) === label);
  }

  /** Empty for an unknown memory. */
  labelsOf(id: MemoryId): readonly Label[] {
    const versions = this.#versions.get(id);
    return versions === undefined ? [] : labelsIn(versions).filter((label) => label !== WITHDRAWN);
  }

  /** Whether a memory has or had more than one text. */
  hasSeveral(id: MemoryId): boolean {
    return (this.#versions.get(id)?.table?.size ?? 1) > 1;
  }

  isDated(id: MemoryId, label: Label): boolean {
    const versions = this.#versions.get(id);
    if (versions?.table != null) return versions.table.get(label) === true;
    return versions?.current === label && versions.isDated;
  }

  /** Whether two texts of a memory have the same words, one with a date and one without. */
  areSameWords(id: MemoryId, a: Label, b: Label, textOf: (label: Label) => string): boolean {
    const versions = this.#versions.get(id);
    if (versions === undefined || !isIn(versions, a) || !isIn(versions, b)) return false;
    const [inA, inB] = [this.isDated(id, a), this.isDated(id, b)];
    return inA !== inB && ownWords(textOf(a), inA) === ownWords(textOf(b), inB);
  }

  /** Memories that have or had a block's text, in an order that survives a reload. */
  holdersOf(label: Label): MemoryId[] {
    return this.#allHoldersOf(label).sort();
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
    const memories = [...this.#versions.values()];
    for (let size = -1; size !== labels.size; ) {
      size = labels.size;
      for (const versions of memories)
        if (labelsIn(versions).some((label) => labels.has(label))) labels.add(versions.current);
    }
    return labels;
  }

  /** Adds a version. A memory's first version is always its current one. */
  add(id: MemoryId, label: Label, current: boolean, isDated = false): void {
    this.#hold(id, label, current, isDated);
    this.#dirty.add(id);
  }

  /** Returns the labels that no other memory has or had. */
  forget(id: MemoryId): ReadonlySet<Label> {
    const gone = new Set<Label>();
    for (const label of this.labelsOf(id)) {
      this.#release(id, label);
      if (this.#allHoldersOf(label).length === 0) gone.add(label);
    }
    this.#remove(id);
    return gone;
  }

  /** Removes a block, and memories that are left without a version. */
  drop(label: Label): void {
    for (const id of this.#allHoldersOf(label)) {
      const versions = this.#versions.get(id);
      versions?.table?.delete(label);
      if (hasNoText(versions?.table ?? NO_VERSIONS)) this.#remove(id);
    }
    this.#holders.delete(label);
  }

  /** All versions of the memories that changed since the last call. */
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
      const origin = current ? this.#origins.get(memoryId) : undefined;
      const dated = this.isDated(memoryId, label) ? { dated: true as const } : {};
      return {
        memoryId,
        label,
        current,
        ...dated,
        ...found,
        ...ofRun,
        ...(origin === undefined ? {} : { origin }),
        ...(until === undefined ? {} : { until }),
      };
    });
  }

  #allHoldersOf(label: Label): MemoryId[] {
    const holders = this.#holders.get(label);
    return typeof holders === "string" ? [holders] : [...(holders ?? [])];
  }

  #hold(id: MemoryId, label: Label, current: boolean, isDated: boolean): void {
    const versions = this.#versions.get(id);
    if (versions === undefined) this.#versions.set(id, { current: label, isDated, isFound: false, table: null });
    else if (versions.table === null && versions.current === label) versions.isDated = isDated;
    else {
      versions.table ??= new Map([[versions.current, versions.isDated]]);
      versions.table.set(label, isDated);
      if (current) versions.current = label;
    }
    const holders = this.#holders.get(label);
    if (holders instanceof Set) holders.add(id);
    else if (holders !== id) this.#holders.set(label, holders === undefined ? id : new Set([holders, id]));
  }

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
    this.#origins.delete(id);
    // A withdrawn memory has this one beside its texts.
    this.#release(id, WITHDRAWN);
    this.#dirty.delete(id);
  }

  #release(id: MemoryId, label: Label): void {
    const holders = this.#holders.get(label);
    if (holders instanceof Set) holders.delete(id);
    else if (holders === id) this.#holders.delete(label);
  }
}

/** In the order in which they came. */
function labelsIn({ current, table }: Versions): readonly Label[] {
  return table === null ? [current] : [...table.keys()];
}

function isIn({ current, table }: Versions, label: Label): boolean {
  return table === null ? label === current : table.has(label);
}
