import type { LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp";
import type { AnswerToken, GenerationRequest, LikelyToken } from "./generation.js";

/** A sampled token; where requested, with the distribution, likeliest first. */
interface DrawnToken {
  readonly token: Token;
  readonly probabilities?: ReadonlyMap<Token, number>;
}

/**
 * Samples a sequence's continuation. With log probabilities tokens are drawn from the whole vocabulary, because llama.cpp reports
 * probabilities after top-k and top-p; at temperature 0 too.
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

/** Collects tokens' log probabilities until they are emitted with their text. */
export class TokenLog {
  #tokens: AnswerToken[] = [];

  /** @param top alternatives per token; undefined: log probabilities are not reported */
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

  /** Tokens since the last call; empty where log probabilities are not reported. */
  take(): { readonly tokens?: readonly AnswerToken[] } {
    if (this.top === undefined) return {};
    const tokens = this.#tokens;
    this.#tokens = [];
    return { tokens };
  }

  #likely(token: Token, probability: number): LikelyToken {
    // Special tokens by name, which text does not have.
    return { text: this.model.detokenize([token], true), logprob: Math.log(probability) };
  }
}
