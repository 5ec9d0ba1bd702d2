import { MemorySourceError } from "./memory-source.js";

/** Most characters (UTF-16 units) that one memory's text may have. */
export const MAX_MEMORY_CHARACTERS = 100_000;

/**
 * Unicode's category Cs. With the `u` flag a proper pair is one character of another category, so this finds lone halves only.
 * `String.prototype.isWellFormed` says the same, but is not in the es2023 library that the project compiles against.
 */
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Why a string cannot go into a prompt and a database and come back the same; null where it can. NUL ends a string for some of the C
 * code underneath, and half a surrogate pair has no UTF-8 form: encoders replace it, so that two different strings become one.
 */
export function unstorable(text: string): string | null {
  if (text.includes("\0")) return "must not contain a NUL character";
  if (LONE_SURROGATE.test(text)) return "must not contain half of a surrogate pair";
  return null;
}

/**
 * Why a text cannot be a memory, as the end of a sentence that starts with its name ("must …"); null where it can. Never quotes the
 * text.
 */
export function memoryTextProblem(text: string): string | null {
  if (text.length > MAX_MEMORY_CHARACTERS) return `must have at most ${MAX_MEMORY_CHARACTERS} characters`;
  if (text.trim() === "") return "must contain something other than white space";
  return unstorable(text);
}

/** Throws {@link MemorySourceError} `unsupported` for a text that cannot be a memory. */
export function checkMemoryText(source: string, text: string): void {
  const problem = memoryTextProblem(text);
  if (problem !== null) {
    throw new MemorySourceError(source, { kind: "unsupported", operation: `keep a memory: its text ${problem}` });
  }
}
