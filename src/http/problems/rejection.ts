import type { Context } from "hono";
import { answerProblem } from "./openai-problem.js";
import { problem } from "./problem.js";

/** Why a request was turned away before anything was done for it. Counted under this name; it says nothing about who asked. */
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

/** Is told of every refusal. */
export type OnRejected = (reason: RejectionReason) => void;

/** For a client that met a limit which empties by itself. */
export const RETRY_SOON = { "retry-after": "1" } as const;

/** Turns a request away for now; the detail names the limit. */
export function rejectForNow(
  c: Context,
  status: 429 | 503,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return answerProblem(c, problem(status, detail), { headers: { ...RETRY_SOON, ...headers } });
}
