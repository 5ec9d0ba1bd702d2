import { largest, smallest } from "../../core/text/lists.js";

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

/** What may be handed on of a text so far, and whether it has ended. */
export interface Handed {
  readonly text: string;
  readonly stopped: boolean;
}

/**
 * Cuts a growing text at the first stop text. What could still become the beginning of one is held back until that is known. Reads each
 * character once, whatever the stop texts are (Knuth, Morris, Pratt).
 */
export class StopText {
  #held = "";
  readonly #stops: readonly Searched[];

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== "").map((stop) => new Searched(stop));
  }

  /** Takes more text and gives what can be handed on. */
  push(text: string): Handed {
    const seen = this.#held + text;
    const starts = this.#stops.map((stop) => stop.push(text)).filter((start) => start !== null);
    if (starts.length > 0) {
      this.#held = "";
      return { text: seen.slice(0, this.#startIn(seen, text, smallest(starts))), stopped: true };
    }
    const held = largest(
      this.#stops.map(({ matched }) => matched),
      0,
    );
    this.#held = seen.slice(seen.length - held);
    return { text: seen.slice(0, seen.length - held), stopped: false };
  }

  /** What was held back, when no more text comes. */
  rest(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  /** A place that is counted from the newest text's beginning, in what was held back and it. */
  #startIn(seen: string, text: string, start: number): number {
    return seen.length - text.length + start;
  }
}

/** A stop text that is looked for in a growing text. */
class Searched {
  /** How much of the stop text the text ends with. */
  matched = 0;
  /** For each beginning of the stop text, how long the longest shorter beginning is that it ends with. */
  readonly #shorter: Int32Array;

  constructor(private readonly stop: string) {
    this.#shorter = new Int32Array(stop.length);
    for (let at = 1, length = 0; at < stop.length; at++) {
      while (length > 0 && stop[at] !== stop[length]) length = this.#shorter[length - 1] ?? 0;
      if (stop[at] === stop[length]) length++;
      this.#shorter[at] = length;
    }
  }

  /** Where the stop text begins that this text completes first, counted from this text's beginning; null where it completes none. */
  push(text: string): number | null {
    let found: number | null = null;
    for (let at = 0; at < text.length; at++) {
      while (this.matched > 0 && text[at] !== this.stop[this.matched])
        this.matched = this.#shorter[this.matched - 1] ?? 0;
      if (text[at] === this.stop[this.matched]) this.matched++;
      if (this.matched < this.stop.length) continue;
      found ??= at + 1 - this.stop.length;
      this.matched = this.#shorter[this.matched - 1] ?? 0;
    }
    return found;
  }
}
