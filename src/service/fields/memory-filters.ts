import { z } from "zod";
import { isObject } from "../../core/text/json.js";
import { unstorable } from "../../core/text/memory-text.js";

/* Filters of a search, in Mem0's form: `{ topic: "food", year: { gte: 2025 }, OR: [{ … }, { … }] }`. */

/** Most conditions of one filter, and how deep they may be nested. */
const MAX_CONDITIONS = 100;
const MAX_FILTER_NESTING = 5;
const MAX_VALUE_CHARACTERS = 1_000;
const OPERATORS: ReadonlySet<string> = new Set([
  ...["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains"],
]);
const LOGICAL: ReadonlySet<string> = new Set(["AND", "OR", "NOT"]);
/** Never allowed in a filter: within `OR`, they would undo the request's own user. */
const IDENTITIES: ReadonlySet<string> = new Set([
  ...["user_id", "agent_id", "run_id", "app_id", "userId", "agentId", "runId", "appId"],
]);

/** A filter's problem, as the end of a sentence whose subject is the field; null: none. Never quotes a value. */
function memoryFiltersProblem(filters: unknown): string | null {
  const conditions = { left: MAX_CONDITIONS };
  return problemIn(filters, conditions, MAX_FILTER_NESTING);
}

function problemIn(filters: unknown, conditions: { left: number }, levels: number): string | null {
  if (!isObject(filters)) return "must be an object of conditions";
  if (levels === 0) return `must not be nested more than ${MAX_FILTER_NESTING} levels deep`;
  for (const [name, condition] of Object.entries(filters)) {
    if (--conditions.left < 0) return `must have at most ${MAX_CONDITIONS} conditions`;
    const problem = nameProblem(name) ?? conditionProblem(name, condition, conditions, levels);
    if (problem !== null) return problem;
  }
  return null;
}

function nameProblem(name: string): string | null {
  if (IDENTITIES.has(name)) return `must not name ${name}: whose memories is not a condition`;
  if (name === "" || name.length > MAX_VALUE_CHARACTERS || unstorable(name) !== null)
    return `must have names of 1 to ${MAX_VALUE_CHARACTERS} characters`;
  return null;
}

function conditionProblem(
  name: string,
  condition: unknown,
  conditions: { left: number },
  levels: number,
): string | null {
  if (LOGICAL.has(name)) {
    // The platform's form of a condition that must not apply.
    if (name === "NOT" && isObject(condition)) return problemIn(condition, conditions, levels - 1);
    if (!Array.isArray(condition)) return `must have a list of filters in ${name}`;
    for (const inner of condition) {
      const problem = problemIn(inner, conditions, levels - 1);
      if (problem !== null) return problem;
    }
    return null;
  }
  // The platform's form of conditions on metadata.
  if (name === "metadata") return problemIn(condition, conditions, levels - 1);
  if (!isObject(condition)) return valueProblem(condition);
  for (const [operator, value] of Object.entries(condition)) {
    if (!OPERATORS.has(operator)) return `must compare with ${[...OPERATORS].join(", ")}`;
    const problem = valueProblem(value);
    if (problem !== null) return problem;
  }
  return null;
}

function valueProblem(value: unknown): string | null {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (values.length > MAX_CONDITIONS) return `must compare with at most ${MAX_CONDITIONS} values`;
  return values.every(isValue)
    ? null
    : `must compare with numbers, true, false, null and texts of at most ${MAX_VALUE_CHARACTERS} characters`;
}

function isValue(value: unknown): boolean {
  if (typeof value === "string") return value.length <= MAX_VALUE_CHARACTERS && unstorable(value) === null;
  return value === null || typeof value === "boolean" || Number.isFinite(value);
}

export const memoryFilters = z
  .record(z.string(), z.unknown(), "must be an object of conditions")
  .superRefine((filters, context) => {
    const problem = memoryFiltersProblem(filters);
    if (problem !== null) context.addIssue({ code: "custom", message: problem });
  });
