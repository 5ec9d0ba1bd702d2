import type { DeletionWatch } from "../scopes/deletion-watch.js";
import type { ChooseDepth } from "./chosen-depth.js";
import type { ComposeAnswer } from "./compose-answer.js";
import type { ColdHead } from "./prompt-drafts.js";

/** Callbacks during a compose, within the user's queue. */
export interface ComposeHooks {
  /**
   * Called before the memory search if much of the prompt's prefix is expected to be uncached. The returned function is called after the
   * search and awaited.
   */
  readonly whileSearching?: ((head: ColdHead) => () => Promise<void>) | undefined;
  /** Chooses, once memories are found, how many of them the prompt contains. */
  readonly chooseDepth?: ChooseDepth | undefined;
  /**
   * Called with the answer before it is stored, which may still fail: the answer is final only when `compose` resolves. Called again with
   * another answer if the prompt has to be planned again; not called if the previous prompt could not be stored. Where the user is deleted
   * after this call, `compose` rejects with `DeletedWhileSentError`: what was announced is the last that is made of the request.
   */
  readonly beforeStored?: ((answer: ComposeAnswer) => void) | undefined;
  /**
   * What was known of the user's deletions when memstem read messages of the request itself: where something was deleted since, `compose`
   * rejects with `OutdatedHistoryError`. Absent: they are all the caller's.
   */
  readonly readSince?: DeletionWatch | undefined;
  /** Called with what is known of the user's deletions when a prompt was planned, before it is announced or returned. */
  readonly planned?: ((watch: DeletionWatch) => void) | undefined;
}
