import type { ChatMessage } from "../src/core/index.js";
import { scored, tokenized } from "../src/eval/engine/upstream-engine.js";

/** A prompt, and the right answer behind it. */
export interface LikelihoodOfAnswer {
  readonly promptTokens: number;
  readonly answerTokens: number;
  /** −ln p of the whole answer. */
  readonly nats: number;
  /** ln p of what may come first, the likeliest first. */
  readonly first: readonly number[];
}

/** How likely a model on vLLM holds an answer. `top` log probabilities are asked for of each token. Throws for an engine's error. */
export async function answerLikelihood(
  { url, model }: { readonly url: string; readonly model: string },
  messages: readonly ChatMessage[],
  answer: string,
  top = 0,
): Promise<LikelihoodOfAnswer> {
  const post = (path: string, body: object) => posted(new URL(path, url), { model, ...body });
  const prompt = tokenized.parse(await post("/tokenize", { messages })).tokens;
  const right = tokenized.parse(await post("/tokenize", { prompt: answer, add_special_tokens: false })).tokens;
  const body = { prompt: [...prompt, ...right], max_tokens: 1, temperature: 0, prompt_logprobs: top };
  const [{ prompt_logprobs: logprobs }] = scored.parse(await post("/v1/completions", body)).choices;
  const first = Object.values(logprobs[prompt.length] ?? {}).map(({ logprob }) => logprob);
  const nats = right.reduce(
    (sum, token, at) => sum - (logprobs[prompt.length + at]?.[token]?.logprob ?? Number.NaN),
    0,
  );
  return {
    promptTokens: prompt.length,
    answerTokens: right.length,
    nats,
    first: first.toSorted((a, b) => b - a),
  };
}

async function posted(url: URL, body: unknown): Promise<unknown> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${url.pathname}: ${answer.status} ${(await answer.text()).slice(0, 300)}`);
  return answer.json();
}

/** A mean with its interval of 95 %: `+0.012 ± 0.034`. */
export function meanWithInterval(values: readonly number[]): string {
  const mean = values.reduce((sum, one) => sum + one, 0) / values.length;
  const variance = values.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (values.length - 1);
  const interval = 1.96 * Math.sqrt(variance / values.length);
  return `${mean < 0 ? "−" : "+"}${Math.abs(mean).toFixed(3)} ± ${interval.toFixed(3)}`;
}
