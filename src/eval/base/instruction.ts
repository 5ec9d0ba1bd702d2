/** The instructions that every measured prompt begins with, whoever builds it. */
export const INSTRUCTION = "You are a helpful assistant. Answer the question from what you remember about the user.";

/** What a history holds as the answer to a question that has none. */
export const NO_ANSWER = "I don't know.";

/** A text of so many o200k_base tokens, for histories whose answers have a given length. */
export function answerOf(tokens: number): string {
  return "yes".concat(" yes".repeat(tokens - 1));
}

/** Milliseconds between two questions, as composers are told: time to read an answer and ask on. */
export const PAUSE_MS = 30_000;
