import { readFileSync } from "node:fs";
import { setTimeout as setTimeoutAsync } from "node:timers/promises";
import { InvalidRequestError } from "../service/base/errors.js";
import { readOptions } from "../service/fields/fields.js";
import { type Alert, type AlertFile, alertFile } from "../service/usage/usage-alerts.js";
import { type Settings, variableOf } from "./setting-list.js";

const NO_ALERTS: AlertFile = { rules: [] };

/** The rules of `MEMPREFIX_ALERTS`; none without one. Throws {@link InvalidRequestError}, naming what is wrong in the file. */
export function readAlertFile({ alerts }: Pick<Settings, "alerts">): AlertFile {
  if (alerts === undefined) return NO_ALERTS;
  const field = variableOf("alerts");
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(alerts, "utf8"));
  } catch (error) {
    const message = error instanceof SyntaxError ? "is not JSON" : "cannot be read";
    throw new InvalidRequestError([{ field, message: `${alerts} ${message}` }]);
  }
  try {
    return readOptions(alertFile, json);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new InvalidRequestError(
      error.issues.map((issue) => ({ field, message: `${alerts}: ${issue.field}: ${issue.message}` })),
    );
  }
}

/** Milliseconds that one try may take. */
const TIMEOUT_MS = 10_000;
/** Milliseconds before the tries after the first. */
const RETRIES_MS = [1_000, 5_000, 30_000] as const;

/** What is posted of an alert. */
export function alertBody({ rule, isFiring, at, value, reference }: Alert) {
  const { name, measure, tenant, model = null, engine = null } = rule;
  return { name, state: isFiring ? "firing" : "resolved", measure, tenant, model, engine, value, reference, at };
}

/**
 * Posts alerts as JSON, tried again three times; a redirect is a failure. Rejects with why the last try failed, without the address, which
 * may hold a secret.
 *
 * @param onFailed called with why a try failed, as soon as it did
 * @param waitsMs milliseconds before the tries after the first
 */
export async function postAlert(
  url: string,
  alert: Alert,
  signal: AbortSignal,
  onFailed: (error: AlertNotSentError) => void = () => {},
  waitsMs: readonly number[] = RETRIES_MS,
): Promise<void> {
  for (let failed = 0; ; failed++) {
    const problem = await tryPost(url, JSON.stringify(alertBody(alert)), signal);
    if (problem === null) return;
    const error = new AlertNotSentError(problem);
    if (!signal.aborted) onFailed(error);
    const wait = waitsMs[failed];
    if (wait === undefined || signal.aborted) throw error;
    await setTimeoutAsync(wait, undefined, { signal, ref: false }).catch(() => {});
  }
}

/** Null: it was taken. */
async function tryPost(url: string, body: string, signal: AbortSignal): Promise<string | null> {
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    await answer.body?.cancel();
    return answer.ok ? null : `it was answered ${answer.status}`;
  } catch (error) {
    return failureOf(error);
  }
}

/** The network's code where it has one: the error itself is named alike for every cause. */
function failureOf(error: unknown): string {
  const { name = "it failed", cause } = error instanceof Error ? error : {};
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : name;
}

/** An alert could not be posted. */
export class AlertNotSentError extends Error {
  override readonly name = "AlertNotSentError";
  constructor(why: string) {
    super(`an alert could not be posted: ${why}`);
  }
}
