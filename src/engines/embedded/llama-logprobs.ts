import type { LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp";
import type { AnswerToken, GenerationRequest, LikelyToken } from "./generation.js";

/** A token that was drawn, with what it was drawn from where that was asked for: likeliest first. */
interface DrawnToken {
  readonly token: Token;
  readonly probabilities?: ReadonlyMap<Token, number>;
}

/**
 * Has a sequence go on from these tokens. With log probabilities tokens are drawn from the whole vocabulary, because llama.cpp tells the
 * probabilities behind what limits the draw; the likeliest, at temperature 0, is taken from all as well.
 */
export async function* drawTokens(
  sequence: LlamaContextSequence,
  tokens: Token[],
  { temperature = 0, topP, seed, topLogprobs }: GenerationRequest,
): AsyncGenerator<DrawnToken, void, undefined> {
  const options = { temperature, ...(seed === undefined ? {} : { seed }), yieldEogToken: true };
  if (topLogprobs !== undefined) {
    const whole = { ...options, topK: 0, topP: 1 };
    yield* sequence.evaluateWithMetadata(tokens, { probabilities: true }, whole);
    return;
  }
  const limited = { ...options, ...(topP === undefined ? {} : { topP }) };
  for await (const token of sequence.evaluate(tokens, limited)) yield { token };
}

/** Keeps what is told of an answer's tokens until it is handed on with their text. */
export class TokenLog {
  #tokens: AnswerToken[] = [];

  /** @param top how many of the likeliest tokens are told of each; undefined: nothing is */
  constructor(
    private readonly model: Pick<LlamaModel, "detokenize">,
    private readonly top: number | undefined,
  ) {}

  get isEmpty(): boolean {
    return this.#tokens.length === 0;
  }

  push(token: Token, probabilities: ReadonlyMap<Token, number> | undefined): void {
    if (this.top === undefined || probabilities === undefined) return;
    const top: LikelyToken[] = [];
    for (const [likely, probability] of probabilities) {
      if (top.length >= this.top) break;
      top.push(this.#likely(likely, probability));
    }
    this.#tokens.push({ ...this.#likely(token, probabilities.get(token) ?? 0), top });
  }

  /** Those since the last time; nothing where nothing is told. */
  take(): { readonly tokens?: readonly AnswerToken[] } {
    if (this.top === undefined) return {};
    const tokens = this.#tokens;
    this.#tokens = [];
    return { tokens };
  }

  #likely(token: Token, probability: number): LikelyToken {
    // With the marks of the template by name: whoever reads this has to tell them from text.
    return { text: this.model.detokenize([token], true), logprob: Math.log(probability) };
  }
}
