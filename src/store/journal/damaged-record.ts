import { z } from "zod";

/**
 * A body of a record, or a snapshot, is not what this store writes. The message names what is wrong and where, and quotes nothing of it;
 * whoever reads adds the scope and the record.
 */
export class DamagedRecordError extends Error {
  override readonly name = "DamagedRecordError";
}

/**
 * Parses a body and checks its shape. Gives the parsed value itself and no copy: messages and plans keep the order of their fields, in which
 * they may be sent again. So `shape` must not transform.
 *
 * @param what names the body in errors
 */
export function parsedBody<Shape extends z.ZodType>(what: string, text: string, shape: Shape): z.output<Shape> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text.
    throw new DamagedRecordError(`${what}: not valid JSON`);
  }
  const checked = shape.safeParse(value);
  if (checked.success) return value as z.output<Shape>;
  const [issue] = checked.error.issues;
  throw new DamagedRecordError(
    `${what}: ${issue?.message ?? "invalid"}, at ${z.core.toDotPath(issue?.path ?? []) || "its top"}`,
  );
}
