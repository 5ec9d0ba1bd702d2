import type { ReadingCall, WritingCall } from "./journal-calls.js";
import type { Outcome } from "./journal-outcomes.js";

/** What a thread is started for. */
export interface ThreadTask {
  readonly file: string;
  readonly task: "read" | "write";
}

/** What a thread is asked; `close` has no answer but the thread's end. */
export type ThreadCall =
  | { readonly id: number; readonly ask: "read"; readonly call: ReadingCall }
  | { readonly id: number; readonly ask: "write"; readonly calls: readonly WritingCall[] }
  | { readonly id: number; readonly ask: "erased" }
  | { readonly id: number; readonly ask: "close" };

/** An outcome for each call, in their order. */
export interface ThreadAnswer {
  readonly id: number;
  readonly outcomes: readonly Outcome[];
}
