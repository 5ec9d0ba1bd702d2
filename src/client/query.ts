import type { FieldIssue } from "../service/base/call-types.js";
import { InvalidRequestError } from "./errors.js";
import { wireName } from "./wire-names.js";

/**
 * Options as a query, with its `?`. Absent ones are left out. Throws {@link InvalidRequestError} for values that a query would say otherwise:
 * everything in it is text, and half of a surrogate pair would become another character.
 */
export function queryOf(options: object): string {
  const issues: FieldIssue[] = [];
  const parts: string[] = [];
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined) continue;
    const message = name.includes("_") ? "is not a known field" : problemOf(value);
    if (message !== null) issues.push({ field: name, message });
    else parts.push(`${wireName(name)}=${encodeURIComponent(String(value))}`);
  }
  if (issues.length > 0) throw new InvalidRequestError(issues);
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function problemOf(value: unknown): string | null {
  if (typeof value === "number") return Number.isFinite(value) ? null : "must be a finite number";
  if (typeof value !== "string") return "must be a text or a number";
  return /\p{Surrogate}/u.test(value) ? "must not contain half of a surrogate pair" : null;
}
