import type { z } from "zod";
import type { FieldIssue } from "../base/errors.js";

/** Most that are said of one request: enough to repair it by. A body may have a hundred thousand fields that nobody knows. */
const MOST_ISSUES = 100;

/** Names the field of every issue, up to {@link MOST_ISSUES}: `messages[2].content`; an unknown field by its own name. */
export function fieldIssues(error: z.ZodError): FieldIssue[] {
  const issues = error.issues.slice(0, MOST_ISSUES);
  return issues.flatMap((issue) => issuesOf(issue, issue.path)).slice(0, MOST_ISSUES);
}

function issuesOf(issue: z.core.$ZodIssue, path: readonly PropertyKey[]): FieldIssue[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys
      .slice(0, MOST_ISSUES)
      .map((key) => ({ field: fieldName([...path, key]), message: "is not a known field" }));
  }
  if (issue.code === "invalid_union") {
    // The alternative of which something fits is the one that was meant.
    const meant = issue.errors.find((issues) => issues.some((inner) => inner.path.length > 0));
    if (meant !== undefined) return meant.flatMap((inner) => issuesOf(inner, [...path, ...inner.path]));
  }
  const named = issue.code === "custom" ? issue.params?.["field"] : undefined;
  return [{ field: typeof named === "string" ? named : fieldName(path), message: wordsOf(issue) }];
}

/** zod says of a field that is not there that it is of another type. */
function wordsOf({ code, message }: z.core.$ZodIssue): string {
  return code === "invalid_type" && message.endsWith("received undefined") ? "is missing" : message;
}

function fieldName(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "body";
  return path
    .map((key, at) => (typeof key === "number" ? `[${key}]` : `${at === 0 ? "" : "."}${String(key)}`))
    .join("");
}
