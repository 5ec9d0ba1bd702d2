/** Counts the tokens of a text. Passed in, so that `core` depends on no tokenizer; must be a pure function of the text. */
export interface TokenCounter {
  (text: string): number;
  /** What a chat template adds, where the counter is of an engine whose template is known. */
  readonly template?: TemplateTokens;
}

/** Tokens of a chat template that are no message's text. */
export interface TemplateTokens {
  /** Around a message of this role. */
  perMessage(role: string): number;
  /** Of those, and of what opens a prompt, what stands before a user message's text. */
  readonly beforeText: number;
}

/**
 * Tokens around one message (role, delimiters) where the template is not known. Templates differ; four is what OpenAI documents for its
 * own and what ChatML-like templates come to. Every figure in a plan is an estimate made with it.
 */
export const TOKENS_PER_MESSAGE = 4;

/** Tokens around a message of this role, as this counter's template has them. */
export function tokensPerMessage({ template }: TokenCounter, role: string): number {
  return template?.perMessage(role) ?? TOKENS_PER_MESSAGE;
}
