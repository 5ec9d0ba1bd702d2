import type { ChatMessage, Depth, Ordering, Warning } from "../../core/index.js";

/** A prompt as it would be sent at some depth. */
export interface DraftedPrompt {
  readonly messages: readonly ChatMessage[];
  /** The engine's other fields. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** The order of its blocks. */
  readonly ordering: Ordering;
  /** Blocks that it could contain, and how many of them it must. */
  readonly blocks: number;
  readonly due: number;
  /** Why its engine gives no log probabilities; null where it may. */
  readonly noLogprobs: string | null;
}

/** A request whose memories were retrieved, before it is composed. */
export interface UncomposedPrompt {
  /** Drafts the prompt at a depth; null: with all its blocks. Serves and stores nothing. */
  draft(depth: Depth | null): Promise<DraftedPrompt>;
}

/** The chosen depth, and warnings for the caller. */
export interface ChosenDepth extends Depth {
  readonly warnings: readonly Warning[];
}

/** Chooses how many memories a prompt gets. Does not reject when the engine fails. */
export type ChooseDepth = (prompt: UncomposedPrompt) => Promise<ChosenDepth>;
