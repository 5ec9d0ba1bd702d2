/** Turns tokens into text; `before` are those that stand before them. */
export type Detokenize<Token> = (tokens: readonly Token[], before: readonly Token[]) => string;

const INCOMPLETE = "\ufffd";
/** No character takes more tokens; what is longer is no text, and is handed on as it is. */
const LONGEST_CHARACTER = 8;
/** Tokens before, which some tokenizers look at for a leading space. */
const BEFORE = 8;

/** The text of an answer as its tokens come: a character that is spread over several tokens is handed on whole. */
export class AnswerText<Token> {
  #before: readonly Token[] = [];
  #pending: readonly Token[] = [];

  constructor(readonly detokenize: Detokenize<Token>) {}

  /** The text that a further token completes; empty while a character is incomplete. */
  push(token: Token): string {
    this.#pending = [...this.#pending, token];
    const text = this.detokenize(this.#pending, this.#before);
    return text.endsWith(INCOMPLETE) && this.#pending.length < LONGEST_CHARACTER ? "" : this.#handOn(text);
  }

  /** What is left when no more tokens come, whole or not. */
  rest(): string {
    return this.#pending.length === 0 ? "" : this.#handOn(this.detokenize(this.#pending, this.#before));
  }

  #handOn(text: string): string {
    this.#before = [...this.#before, ...this.#pending].slice(-BEFORE);
    this.#pending = [];
    return text;
  }
}
