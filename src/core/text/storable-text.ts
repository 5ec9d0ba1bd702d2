/**
 * Why a string cannot go into a prompt and a database and come back the same; null where it can. NUL ends a string for some of the C
 * code underneath, and half a surrogate pair has no UTF-8 form: encoders replace it, so that two different strings become one.
 */
export function unstorable(text: string): string | null {
  if (text.includes("\0")) return "must not contain a NUL character";
  if (!text.isWellFormed()) return "must not contain half of a surrogate pair";
  return null;
}

/** The text with U+FFFD in place of every half of a surrogate pair, as UTF-8 encoders would have it. */
export function wellFormed(text: string): string {
  return text.toWellFormed();
}

/** The first reason why a JSON value holds a string that is {@link unstorable}, at any depth and in names too; null where none does. */
export function unstorableWithin(value: unknown): string | null {
  if (typeof value === "string") return unstorable(value);
  if (typeof value !== "object" || value === null) return null;
  for (const [name, field] of Object.entries(value)) {
    const problem = unstorable(name) ?? unstorableWithin(field);
    if (problem !== null) return problem;
  }
  return null;
}
