import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryVersions } from "../../../src/core/blocks/memory-versions.js";
import type { Label, MemoryId } from "../../../src/core/text/ids.js";

const IDS = ["a", "b", "c"] as MemoryId[];
const LABELS = [1, 2, 3, 4] as Label[];

/** The same as plain tables, a row for each version. */
class Tables {
  readonly current = new Map<MemoryId, Label>();
  readonly versions = new Map<MemoryId, Map<Label, boolean>>();

  add(id: MemoryId, label: Label, isCurrent: boolean, isDated: boolean): void {
    const versions = this.versions.get(id) ?? new Map<Label, boolean>();
    this.versions.set(id, versions.set(label, isDated));
    if (isCurrent || !this.current.has(id)) this.current.set(id, label);
  }

  forget(id: MemoryId): void {
    this.versions.delete(id);
    this.current.delete(id);
  }

  drop(label: Label): void {
    for (const [id, versions] of this.versions) if (versions.delete(label) && versions.size === 0) this.forget(id);
  }

  /** Then it stays: a register drops a memory's current text with its last one. */
  isCurrentBesideOthers(label: Label): boolean {
    return [...this.versions].some(([id, { size }]) => size > 1 && this.current.get(id) === label);
  }

  holdersOf(label: Label): MemoryId[] {
    return [...this.versions].flatMap(([id, versions]) => (versions.has(label) ? [id] : [])).sort();
  }

  rows() {
    return [...this.versions].flatMap(([memoryId, versions]) =>
      Array.from(versions, ([label, isDated]) => {
        const row = { memoryId, label, current: this.current.get(memoryId) === label };
        return isDated ? { ...row, dated: true } : row;
      }),
    );
  }
}

const id = fc.constantFrom(...IDS);
const label = fc.constantFrom(...LABELS);
const change = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant("add" as const), id, label, fc.boolean(), fc.boolean()) },
  fc.tuple(fc.constant("forget" as const), id),
  fc.tuple(fc.constant("drop" as const), label),
);

describe("versions of memories", () => {
  it("are those of plain tables, whatever is added, forgotten and dropped, and after they were stored", () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
        const versions = new MemoryVersions([]);
        const tables = new Tables();
        for (const [kind, ...of] of changes) {
          if (kind === "add") {
            versions.add(...(of as Parameters<MemoryVersions["add"]>));
            tables.add(...(of as Parameters<Tables["add"]>));
          } else if (kind === "forget") {
            const gone = tables.versions.get(of[0] as MemoryId);
            const alone = [...(gone?.keys() ?? [])].filter((one) => tables.holdersOf(one).length === 1);
            expect([...versions.forget(of[0] as MemoryId)]).toEqual(alone);
            tables.forget(of[0] as MemoryId);
          } else if (!tables.isCurrentBesideOthers(of[0] as Label)) {
            versions.drop(of[0] as Label);
            tables.drop(of[0] as Label);
          }
          for (const reloaded of [versions, new MemoryVersions(versions.stored())]) {
            expect(reloaded.stored()).toEqual(tables.rows());
            for (const one of LABELS) expect(reloaded.holdersOf(one)).toEqual(tables.holdersOf(one));
          }
          for (const of of IDS) {
            const own = tables.versions.get(of) ?? new Map<Label, boolean>();
            expect(versions.currentOf(of)).toBe(tables.current.get(of));
            expect(versions.labelsOf(of)).toEqual([...own.keys()]);
            expect(versions.hasSeveral(of)).toBe(own.size > 1);
            for (const one of LABELS) {
              expect(versions.isDated(of, one)).toBe(own.get(one) ?? false);
            }
          }
          for (const one of LABELS)
            expect(versions.isCurrent(one)).toBe(tables.holdersOf(one).some((of) => tables.current.get(of) === one));
        }
      }),
    );
  });
});
