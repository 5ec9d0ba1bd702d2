import type { ChatMessage, Depth, Ordering, Warning } from "../../core/index.js";
import type { DeletionWatch } from "../scopes/deletion-watch.js";

/** A prompt drafted at some depth, as it would be sent. */
export interface DraftedPrompt {
  readonly messages: readonly ChatMessage[];
  /** The request body's other fields. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** The order of its blocks. */
  readonly ordering: Ordering;
  /** How many blocks it could contain, and how many of them it must. */
  readonly blocks: number;
  readonly due: number;
  /** Notices what was deleted since it was drafted. */
  readonly watch: Pick<DeletionWatch, "isSendable">;
  /** Why the engine returns no log probabilities; null if it may. */
  readonly noLogprobs: string | null;
}

/** A request with its retrieved memories, not composed yet. */
export interface UncomposedPrompt {
  /** Drafts the prompt at a depth; null: with all its blocks. Serves and stores nothing. */
  draft(depth: Depth | null): Promise<DraftedPrompt>;
}

/** The chosen depth, and warnings for the caller. */
export interface ChosenDepth extends Depth {
  readonly warnings: readonly Warning[];
}

/** Chooses how many memories a prompt contains. Does not reject if the engine fails. */
export type ChooseDepth = (prompt: UncomposedPrompt) => Promise<ChosenDepth>;
