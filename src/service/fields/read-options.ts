import type { z } from "zod";
import { InvalidRequestError } from "../base/errors.js";
import type { FieldIssue } from "../base/field-issue.js";

/** What a caller may give where a schema checks it. */
export type Given<S extends z.ZodType> = AsGiven<z.input<S>>;
/** A value that nobody changes. */
export type AsGiven<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends readonly (infer Item)[]
    ? readonly AsGiven<Item>[]
    : T extends object
      ? { readonly [K in keyof T]: AsGiven<T[K]> }
      : T;

/** Checks given options against a schema. Throws {@link InvalidRequestError} naming every invalid field. */
export function readOptions<S extends z.ZodType>(schema: S, given: unknown): z.output<S> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new InvalidRequestError(fieldIssues(parsed.error));
}

/** Most issues reported per request: a body may have a hundred thousand unknown fields. */
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
    // The alternative that fails deeper than its root is the one that was meant.
    const meant = issue.errors.find((issues) => issues.some((inner) => inner.path.length > 0));
    if (meant !== undefined) return meant.flatMap((inner) => issuesOf(inner, [...path, ...inner.path]));
  }
  const named = issue.code === "custom" ? issue.params?.["field"] : undefined;
  return [{ field: typeof named === "string" ? named : fieldName(path), message: wordsOf(issue) }];
}

/** zod reports a missing field as one of the wrong type. */
function wordsOf({ code, message }: z.core.$ZodIssue): string {
  return code === "invalid_type" && message.endsWith("received undefined") ? "is missing" : message;
}

function fieldName(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "body";
  return path
    .map((key, at) => (typeof key === "number" ? `[${key}]` : `${at === 0 ? "" : "."}${String(key)}`))
    .join("");
}
