import type { PromptRefusal } from "../../engines/upstream/prompt-refusal.js";
import type { StoreFault } from "../../store/api/store.js";
import {
  AbandonedRequestError,
  BusyUserError,
  InvalidRequestError,
  NotFoundError,
  StoreUnavailableError,
} from "../base/errors.js";
import { linkedSignal } from "../base/linked-signal.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";

/**
 * Why a chat goes to its engine as it came: its messages are none that can be composed; more comes than can be served in time; as many of
 * the user's requests wait as may; composing took too long; the store cannot do its work; the engine refuses its prompt, which is too long for
 * it or has roles in an order that it does not take; or something went wrong that never should.
 */
export type NotComposedReason =
  | "messages"
  | "lag"
  | "user_queue"
  | "timeout"
  | StoreReason
  | PromptRefusal["kind"]
  | "fault";

type StoreReason = "store_busy" | "store_full" | "store_read_only" | "store_failing" | "store_damaged";

/** A chat's prompt, or why there is none. */
export type ChatPrompt =
  | { readonly composed: ComposeAnswer; readonly notComposed: null }
  | { readonly composed: null; readonly notComposed: NotComposedReason };

/** How composing for a chat is watched over. */
export interface ComposingInTime {
  /** Milliseconds. */
  readonly timeoutMs: number;
  /** Called with what went wrong that is nobody's mistake but ours. */
  readonly onFault: (error: unknown) => void;
  /** Called with a prompt that was composed when nobody waited for it any more. */
  readonly onLate: (answer: ComposeAnswer) => void;
}

/**
 * Composes, and gives a reason in place of a prompt where that fails or takes too long: whoever has messages for an engine is not to go
 * without its answer because of memstem (docs/internals/architecture.md, "Promises"). Rejects only with what the caller did wrong, and
 * where the caller has gone.
 *
 * @param signal the caller is gone
 */
export async function composeInTime(
  compose: (signal: AbortSignal) => Promise<ComposeAnswer>,
  signal: AbortSignal,
  { timeoutMs, onFault, onLate }: ComposingInTime,
): Promise<ChatPrompt> {
  const waiting = linkedSignal(signal);
  const composing = compose(waiting.signal).finally(waiting.release);
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), timeoutMs);
  });
  try {
    const composed = await Promise.race([composing, tooLate]);
    if (composed !== null) return { composed, notComposed: null };
  } catch (error) {
    const reason = reasonFor(error);
    if (reason === null) throw error;
    if (isFault(error)) onFault(error);
    return { composed: null, notComposed: reason };
  } finally {
    clearTimeout(timer);
  }
  waiting.abort();
  // What is in the middle of being stored is stored.
  composing.then(onLate, (error: unknown) => {
    if (isFault(error)) onFault(error);
  });
  if (signal.aborted) throw new AbandonedRequestError();
  return { composed: null, notComposed: "timeout" };
}

const STORE_REASONS: Readonly<Record<StoreFault, StoreReason>> = {
  busy: "store_busy",
  full: "store_full",
  "read-only": "store_read_only",
  failing: "store_failing",
  damaged: "store_damaged",
};

/** Null where it is the caller's to hear. */
function reasonFor(error: unknown): NotComposedReason | null {
  if (isCallers(error)) return null;
  if (error instanceof BusyUserError) return "user_queue";
  return error instanceof StoreUnavailableError ? STORE_REASONS[error.fault] : "fault";
}

function isFault(error: unknown): boolean {
  if (isCallers(error) || error instanceof BusyUserError) return false;
  return !(error instanceof StoreUnavailableError && error.fault === "busy");
}

function isCallers(error: unknown): boolean {
  return (
    error instanceof InvalidRequestError || error instanceof NotFoundError || error instanceof AbandonedRequestError
  );
}
