import { performance } from "node:perf_hooks";
import type { PromptRefusal } from "../../engines/upstream/engine-errors.js";
import type { StoreFault } from "../../store/store.js";
import {
  AbandonedRequestError,
  BusyUserError,
  InvalidRequestError,
  MessagesTooLongError,
  NotFoundError,
  StoreUnavailableError,
} from "../base/errors.js";
import { linkedSignal } from "../base/linked-signal.js";

const STORE_REASONS = {
  busy: "store_busy",
  full: "store_full",
  "read-only": "store_read_only",
  failing: "store_failing",
  damaged: "store_damaged",
  unreachable: "store_unreachable",
} as const satisfies Readonly<Record<StoreFault, string>>;

/** Why a chat is not composed: its client opted out, makes the call for itself, or names no user. */
export type NotWantedReason = "bypass" | "side_call" | "no_user";

/**
 * Why a chat goes to its engine unmodified: it is not to be composed; its messages cannot be composed (`messages`); the user's queue is full;
 * a time-out; a failing store; the engine refused the prompt's length or roles; or an internal fault. Only `deleted` was sent composed: the
 * user was deleted meanwhile, so the prompt counts as not composed.
 */
export type NotComposedReason =
  | NotWantedReason
  | "messages"
  | "user_queue"
  | "timeout"
  | (typeof STORE_REASONS)[StoreFault]
  | PromptRefusal["kind"]
  | "fault";

export type ChatPrompt<P> =
  | { readonly composed: P; readonly notComposed: null }
  | { readonly composed: null; readonly notComposed: NotComposedReason };

export interface ComposeTimeoutOptions<P> {
  readonly timeoutMs: number;
  readonly onFault: (error: unknown) => void;
  /** Called with a prompt that was composed after the time-out. */
  readonly onLate: (prompt: P) => void;
}

/** While this process is busy, composing takes longer, up to so many time-outs: other requests wait for the same processor. */
const MOST_TIMEOUTS = 6;

/** Composes with a time-out, less the event loop's other work. Rejects only for an invalid request or a caller who left; else gives a reason. */
export async function composeWithTimeout<P>(
  compose: (signal: AbortSignal) => Promise<P>,
  signal: AbortSignal,
  { timeoutMs, onFault, onLate }: ComposeTimeoutOptions<P>,
): Promise<ChatPrompt<P>> {
  const waiting = linkedSignal(signal);
  const composing = compose(waiting.signal).finally(waiting.release);
  let timer: NodeJS.Timeout | undefined;
  const start = performance.now();
  const before = performance.eventLoopUtilization();
  const tooLate = new Promise<null>((resolve) => {
    const wait = (ms: number) => {
      timer = setTimeout(() => {
        const leftMs = timeoutMs - performance.eventLoopUtilization(before).idle;
        if (leftMs < 1 || performance.now() - start >= MOST_TIMEOUTS * timeoutMs) resolve(null);
        else wait(leftMs);
      }, ms);
    };
    wait(timeoutMs);
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
  // A commit that has started completes.
  composing.then(onLate, (error: unknown) => {
    if (isFault(error)) onFault(error);
  });
  if (signal.aborted) throw new AbandonedRequestError();
  return { composed: null, notComposed: "timeout" };
}

/** Null: the error is the caller's. */
function reasonFor(error: unknown): NotComposedReason | null {
  if (error instanceof MessagesTooLongError) return "context_length";
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
