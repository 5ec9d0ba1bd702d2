/** Counts the tokens of a text. Passed in, so that `core` depends on no tokenizer; must be a pure function of the text. */
export interface TokenCounter {
  (text: string): number;
  /** What the chat template adds; set if the counter belongs to an engine with a known template. */
  readonly template?: TemplateTokens;
}

/** Tokens that a chat template adds around messages' texts. */
export interface TemplateTokens {
  /** Around a message of this role. */
  perMessage(role: string): number;
  /** Tokens before a user message's text: the prompt's opening and the message's own. */
  readonly beforeText: number;
}

/**
 * Tokens around one message (role, delimiters) if the template is not known. Templates differ; OpenAI documents four for its own, and
 * ChatML-like templates need four. Every token figure in a plan is an estimate that uses it.
 */
export const TOKENS_PER_MESSAGE = 4;

/** Tokens that this counter's template puts around a message of this role. */
export function tokensPerMessage({ template }: TokenCounter, role: string): number {
  return template?.perMessage(role) ?? TOKENS_PER_MESSAGE;
}
