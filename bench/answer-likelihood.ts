import type { ChatMessage } from "../src/core/index.js";
import { answerLikelihood, type LikelihoodAfter } from "../src/eval/engine/upstream-engine.js";

/** How likely a model on vLLM holds an answer. `top` log probabilities are asked for of each token. Throws for an engine's error. */
export function likelihoodOn(
  { url, model }: { readonly url: string; readonly model: string },
  messages: readonly ChatMessage[],
  answer: string,
  top = 0,
): Promise<LikelihoodAfter> {
  const send = async (path: string, body: unknown): Promise<unknown> => {
    const to = new URL(path, `${url}/`);
    const headers = { "content-type": "application/json" };
    const response = await fetch(to, { method: "POST", headers, body: JSON.stringify(body) });
    if (response.ok) return response.json();
    throw new Error(`${to.pathname}: ${response.status} ${(await response.text()).slice(0, 300)}`);
  };
  return answerLikelihood(send, { model, messages, answer, top });
}
