/** Counts the tokens of a text. Passed in, so that `core` depends on no tokenizer; must be a pure function of the text. */
export type TokenCounter = (text: string) => number;

/**
 * Tokens that a chat template adds around one message (role, delimiters). Templates differ; four is what OpenAI documents for its
 * own and what ChatML-like templates come to. Every figure in a plan is an estimate made with it.
 */
export const TOKENS_PER_MESSAGE = 4;
