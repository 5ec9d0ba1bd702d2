import { z } from "zod";
import type { ChatMessage } from "../../core/index.js";
import type { AnswerLikelihood, EngineIdentity } from "../base/run-record.js";

/** Sends a JSON body to a path of the engine (`UpstreamCall.path`), without one as GET; rejects where it is refused. */
export type SendJson = (path: string, body: unknown) => Promise<unknown>;

const tokenized = z.looseObject({ tokens: z.array(z.int()).min(1) });
const scored = z.looseObject({
  choices: z.tuple([
    z.looseObject({
      prompt_logprobs: z.array(z.record(z.string(), z.looseObject({ logprob: z.number() })).nullable()),
    }),
  ]),
});
const version = z.looseObject({ version: z.string() });
const models = z.looseObject({ data: z.array(z.looseObject({ id: z.string(), root: z.string().nullish() })) });

/** What is scored, and in whose cache. */
export interface ScoredAnswer {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly answer: string;
  readonly salt: string;
}

/**
 * The right answer's likelihood after a prompt, as vLLM gives it: the chat as tokens, the answer's after them, and log-probabilities of a
 * prompt's tokens. vLLM computes such a prompt whole, cached or not.
 */
export async function answerLikelihood(
  send: SendJson,
  { model, messages, answer, salt }: ScoredAnswer,
): Promise<{ readonly promptTokens: number; readonly likelihood: AnswerLikelihood }> {
  const chat = tokenized.parse(await send("/tokenize", { model, messages })).tokens;
  const own = tokenized.parse(await send("/tokenize", { model, prompt: answer, add_special_tokens: false })).tokens;
  const body = {
    model,
    prompt: [...chat, ...own],
    max_tokens: 1,
    temperature: 0,
    prompt_logprobs: 0,
    cache_salt: salt,
  };
  const [{ prompt_logprobs: logprobs }] = scored.parse(await send("completions", body)).choices;
  const nats = own.reduce((sum, token, at) => {
    const one = logprobs[chat.length + at]?.[token];
    if (one === undefined) throw new Error("the engine gave no log-probability of a token of the answer");
    return sum - one.logprob;
  }, 0);
  return { promptTokens: chat.length, likelihood: { nats, tokens: own.length } };
}

/** What vLLM says of itself: its version, and the name of the weights' folder or repository. */
export async function identityOf(send: SendJson, model: string): Promise<EngineIdentity> {
  const served = models.safeParse(await send("models", undefined)).data?.data.find(({ id }) => id === model);
  const said = await send("/version", undefined).then(version.safeParse, () => undefined);
  return { version: said?.data?.version ?? null, weights: served?.root?.split(/[\\/]/).slice(-2).join("/") ?? null };
}
