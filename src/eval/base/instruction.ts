/** The instructions that every measured prompt begins with, whoever builds it. */
export const INSTRUCTION = "You are a helpful assistant. Answer the question from what you remember about the user.";

/** What a history holds as the answer to a question that has none. */
export const NO_ANSWER = "I don't know.";

/** Milliseconds between two questions, as composers are told: time to read an answer and ask on. */
export const PAUSE_MS = 30_000;
