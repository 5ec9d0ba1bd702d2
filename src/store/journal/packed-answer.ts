import type { Label, MemoryId, PlacedMemory, Plan, Warning } from "../../core/index.js";
import type { StoredAnswer } from "../api/store.js";
import { NumberedNames } from "./numbered-names.js";

const PLACEMENTS = new NumberedNames({ cached_prefix: 0, new: 1, earlier_turn: 2, carried_over: 3 });

/** Label, id, placement, rank, and where it replaces some, their labels. */
type PackedMemory = readonly [number, string, number, number | null, (readonly Label[])?];

/** An answer as it is stored; its memories are short arrays, as at k = 100 they are most of what a compose writes. */
export interface PackedAnswer {
  readonly m: readonly PackedMemory[];
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
  readonly grounds?: NonNullable<StoredAnswer["grounds"]>;
  readonly worker?: string;
}

export function packAnswer({ memories, plan, warnings, grounds, worker }: StoredAnswer): PackedAnswer {
  return {
    m: memories.map(({ label, memoryId, placement, rank, replaces }): PackedMemory => {
      const number = PLACEMENTS.numberOf(placement);
      return replaces.length === 0 ? [label, memoryId, number, rank] : [label, memoryId, number, rank, replaces];
    }),
    plan,
    warnings,
    ...(grounds === null ? {} : { grounds }),
    ...(worker === undefined ? {} : { worker }),
  };
}

export function unpackAnswer({ m, plan, warnings, grounds, worker }: PackedAnswer): StoredAnswer {
  const memories = m.map(
    ([label, memoryId, placement, rank, replaces = []]): PlacedMemory => ({
      label: label as Label,
      memoryId: memoryId as MemoryId,
      placement: PLACEMENTS.nameOf(placement),
      rank,
      replaces,
    }),
  );
  return {
    memories,
    plan,
    warnings,
    grounds: grounds ?? null,
    ...(worker === undefined ? {} : { worker }),
  };
}
