import type { z } from "zod";
import type { FieldIssue } from "./errors.js";

/** Names the field of every issue: `messages[2].content`; an unknown field by its own name. */
export function fieldIssues(error: z.ZodError): FieldIssue[] {
  return error.issues.flatMap((issue): FieldIssue[] => {
    const field = fieldName(issue.path);
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => ({ field: fieldName([...issue.path, key]), message: "is not a known field" }));
    }
    const named = issue.code === "custom" ? issue.params?.["field"] : undefined;
    return [{ field: typeof named === "string" ? named : field, message: issue.message }];
  });
}

function fieldName(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "body";
  return path
    .map((key, at) => (typeof key === "number" ? `[${key}]` : `${at === 0 ? "" : "."}${String(key)}`))
    .join("");
}
