import type { ChatMessage, Depth, Ordering, Warning } from "../../core/index.js";

/** A prompt that would be sent, and from what it could get more. */
export interface DraftedPrompt {
  readonly messages: readonly ChatMessage[];
  /** What the engine is sent beside the messages. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  /** The order of its blocks. */
  readonly ordering: Ordering;
  /** Blocks that it could give, and how many of them it has to. */
  readonly blocks: number;
  readonly due: number;
  /** Why its engine gives no log probabilities; null where nothing is known against it. */
  readonly noLogprobs: string | null;
}

/** A request whose memories were found, before it is composed. */
export interface UncomposedPrompt {
  /** Null: with all its blocks. Nothing is served, and nothing kept. */
  draft(depth: Depth | null): Promise<DraftedPrompt>;
}

/** The depth that was chosen, and what the caller should know of how. */
export interface ChosenDepth extends Depth {
  readonly warnings: readonly Warning[];
}

/** Chooses how many of its memories a prompt gets. Never rejects for an engine that fails. */
export type ChooseDepth = (prompt: UncomposedPrompt) => Promise<ChosenDepth>;
