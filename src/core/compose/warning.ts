import type { Resolution } from "../blocks/resolution.js";
import type { RecalledHistory } from "../conversation/conversation.js";
import type { Label, MemoryId } from "../text/ids.js";

/** Something that the caller should know; the prompt is usable all the same. Contains no memory text. */
export interface Warning {
  readonly code:
    | "duplicate_memory"
    | "duplicate_text"
    | "memory_conflict"
    | "memory_forgotten"
    | "history_diverged"
    | "history_erased"
    | "answer_missing"
    | "injected_text_removed"
    | "memory_cut"
    | "memory_source_failed"
    | "user_id_scoped"
    | "memory_budget_unused"
    | "memory_held_back"
    | "memory_left_out"
    | "depth_unavailable"
    | "request_id_reused";
  readonly message: string;
  readonly memoryIds?: readonly MemoryId[];
}

/** Warnings about the request's memories. */
export function resolutionWarnings(resolution: Resolution): Warning[] {
  return [
    ...about("duplicate_memory", "listed more than once; one copy was kept", resolution.repeated),
    ...about(
      "duplicate_text",
      "has the same text as another memory asked for; the text stands once",
      resolution.sharing,
    ),
    ...about(
      "memory_conflict",
      "listed with two different texts; both were kept, the better ranked one counts as current",
      resolution.conflicting,
    ),
    ...about("memory_forgotten", "was forgotten on request and is not sent", resolution.forgotten),
  ];
}

/** Warnings about the client's history. */
export function historyWarnings(history: RecalledHistory): Warning[] {
  const warnings: Warning[] = [];
  if (history.diverged) {
    const message = "the history was edited, regenerated or cut; what no longer stands in it is given again";
    warnings.push({ code: "history_diverged", message });
  }
  if (history.stripped > 0) {
    const message = `text that memstem had injected came back in ${history.stripped} message(s) of the history and was taken out`;
    warnings.push({ code: "injected_text_removed", message });
  }
  return warnings;
}

/** Warnings about memories held back because the engine was sure without them. */
export function heldBackWarnings(resolution: Resolution, heldBack: ReadonlySet<Label>): Warning[] {
  return about(
    "memory_held_back",
    "was retrieved and not sent: the engine was sure without it",
    idsOf(resolution, heldBack),
  );
}

/** Warnings about memories that do not fit into the engine's context. */
export function leftOutWarnings(resolution: Resolution, leftOut: ReadonlySet<Label>): Warning[] {
  return about(
    "memory_left_out",
    "was retrieved and not sent: the engine's context has no room for it",
    idsOf(resolution, leftOut),
  );
}

function idsOf({ memories }: Resolution, labels: ReadonlySet<Label>): readonly MemoryId[] {
  return memories.filter(({ label }) => labels.has(label)).map(({ memoryId }) => memoryId);
}

function about(code: Warning["code"], message: string, memoryIds: readonly MemoryId[]): Warning[] {
  return memoryIds.length === 0 ? [] : [{ code, message, memoryIds }];
}
