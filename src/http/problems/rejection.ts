import type { GuardedRequest } from "../requests/request.js";
import { answerProblem } from "./openai-problem.js";
import { problem } from "./problem.js";

/** Why a request was rejected before any work was done for it: a label of the metrics, without anything of the caller's. */
export type RejectionReason =
  | "no_key"
  | "host"
  | "origin"
  | "too_large"
  | "rate"
  | "concurrency"
  | "user_queue"
  | "pending"
  | "pending_share"
  | "body_share"
  | "slow_body"
  | "lag"
  | "stopping";

/** Called with every rejection. */
export type OnRejected = (reason: RejectionReason) => void;

/** For limits that free up by themselves. */
export const RETRY_SOON = { "retry-after": "1" } as const;

/** Rejects a request, to be retried; the detail names the limit. */
export function rejectForNow(
  c: Pick<GuardedRequest, "req">,
  status: 429 | 503,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return answerProblem(c, problem(status, detail), { headers: { ...RETRY_SOON, ...headers } });
}
