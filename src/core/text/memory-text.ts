import { unstorable } from "./storable-text.js";

/** Most characters (UTF-16 units) that the text of a memory may have which is added, and by default those of one in a prompt. */
export const MAX_MEMORY_CHARACTERS = 100_000;

/**
 * Why a text cannot be a memory, as the end of a sentence that starts with its name ("must …"); null where it can. Never quotes the
 * text.
 */
export function memoryTextProblem(text: string): string | null {
  if (text.length > MAX_MEMORY_CHARACTERS) return `must have at most ${MAX_MEMORY_CHARACTERS} characters`;
  return foundTextProblem(text);
}

/** The same for the text of a memory that is there already: one that is too long is cut, not refused. */
export function foundTextProblem(text: string): string | null {
  if (text.trim() === "") return "must contain something other than white space";
  return unstorable(text);
}
