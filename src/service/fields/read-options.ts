import type { z } from "zod";
import { InvalidRequestError } from "../base/errors.js";
import { fieldIssues } from "./field-issues.js";

/** Checks what a caller gave against a schema. Throws {@link InvalidRequestError} naming every field that is wrong. */
export function readOptions<S extends z.ZodType>(schema: S, given: unknown): z.output<S> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  throw new InvalidRequestError(fieldIssues(parsed.error));
}
