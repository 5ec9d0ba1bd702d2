import type { Resolution } from "../blocks/context-block.js";
import type { RecalledHistory } from "../conversation/conversation.js";
import type { Label, MemoryId } from "../text/ids.js";

/** Something that the caller should know; the prompt is usable all the same. Contains no memory text. */
export interface Warning {
  readonly code:
    | "duplicate_memory"
    | "duplicate_text"
    | "contained_text"
    | "memory_in_messages"
    | "memory_replaced"
    | "provider_memories_moved"
    | "memory_conflict"
    | "memory_forgotten"
    | "memory_unusable"
    | "memory_ended"
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
      "has the same text as another memory of the request; the prompt contains the text once",
      resolution.sharing,
    ),
    ...about(
      "contained_text",
      "says nothing that another memory of the prompt does not say; it is under that one's label",
      resolution.contained,
    ),
    ...about("memory_in_messages", "is what the prompt's messages say; it is not given again", resolution.said),
    ...about(
      "memory_replaced",
      "is what the conversation's messages said before the client changed them; it is not given",
      resolution.replaced,
    ),
    ...about(
      "memory_conflict",
      "listed with two different texts; both are in the prompt, the better ranked one is current",
      resolution.conflicting,
    ),
    ...about("memory_forgotten", "was forgotten on request; it is not sent", resolution.forgotten),
  ];
}

/** Warnings about the client's history. */
export function historyWarnings(history: RecalledHistory): Warning[] {
  const warnings: Warning[] = [];
  if (history.diverged) {
    const message =
      "the history was edited, regenerated or truncated; memories that it no longer contains are injected again";
    warnings.push({ code: "history_diverged", message });
  }
  if (history.stripped > 0) {
    const message = `text that memstem had injected was removed from ${history.stripped} message(s) of the history`;
    warnings.push({ code: "injected_text_removed", message });
  }
  return warnings;
}

/** Warnings about memories held back because the engine was confident without them. */
export function heldBackWarnings(resolution: Resolution, heldBack: ReadonlySet<Label>): Warning[] {
  return about(
    "memory_held_back",
    "was retrieved but not sent: the engine was confident without it",
    idsOf(resolution, heldBack),
  );
}

/** Warnings about memories that do not fit into the engine's context. */
export function leftOutWarnings(resolution: Resolution, leftOut: ReadonlySet<Label>): Warning[] {
  return about(
    "memory_left_out",
    "was retrieved but not sent: it does not fit into the engine's context",
    idsOf(resolution, leftOut),
  );
}

function idsOf({ memories }: Resolution, labels: ReadonlySet<Label>): readonly MemoryId[] {
  return memories.filter(({ label }) => labels.has(label)).map(({ memoryId }) => memoryId);
}

function about(code: Warning["code"], message: string, memoryIds: readonly MemoryId[]): Warning[] {
  return memoryIds.length === 0 ? [] : [{ code, message, memoryIds }];
}
