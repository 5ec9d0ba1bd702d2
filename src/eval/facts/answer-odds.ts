import { z } from "zod";
import type { ChatMessage } from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import { EngineAnswerError, type SendJson, tokensIn } from "../engine/upstream-engine.js";
import type { FactCase } from "./fact-cases.js";

export interface AnswerOdds {
  /** ln of how many times likelier the new answer is than the old one. */
  readonly logOdds: number;
  readonly promptTokens: number;
}

/** Scores both answers of a case after a prompt. */
export type ScoreAnswers = (messages: readonly ChatMessage[], answers: FactCase["answers"]) => Promise<AnswerOdds>;

const completed = z.looseObject({
  choices: z.tuple([z.looseObject({ logprobs: z.looseObject({ token_logprobs: z.tuple([z.number()]) }) })]),
});

/**
 * Scores answers with vLLM, token by token from the first that differs. Each request generates the one token that it allows, so it hits the
 * prefix cache; `prompt_logprobs` would compute every prompt twice, in full.
 */
export function answerScorer(send: SendJson, model: string): ScoreAnswers {
  const answerTokens = new Map<string, Promise<readonly number[]>>();
  const tokensOf = (answer: string) =>
    keptIn(answerTokens, answer, async () =>
      tokensIn(await send("/tokenize", { model, prompt: answer, add_special_tokens: false })),
    );
  const logProbability = async (prompt: readonly number[], token: number) => {
    const body = { model, prompt, max_tokens: 1, temperature: 0, logprobs: 1, allowed_token_ids: [token] };
    return completed.parse(await send("completions", body)).choices[0].logprobs.token_logprobs[0];
  };
  return async (messages, answers) => {
    const [prompt, old, now] = await Promise.all([
      send("/tokenize", { model, messages }).then(tokensIn),
      tokensOf(answers.old),
      tokensOf(answers.new),
    ]);
    const found = old.findIndex((token, at) => token !== now[at]);
    const differing = found === -1 ? old.length : found;
    const steps = [old, now].flatMap((answer, sign) =>
      answer.slice(differing).map((token, at) => ({
        prompt: [...prompt, ...answer.slice(0, differing + at)],
        token,
        sign: sign === 0 ? -1 : 1,
      })),
    );
    const [first, ...others] = steps;
    if (first === undefined)
      throw new EngineAnswerError(null, "the engine's tokenizer does not tell two answers apart");
    // The first request puts the prompt into the cache; the others hit it.
    const scores = [
      await logProbability(first.prompt, first.token),
      ...(await Promise.all(others.map(({ prompt, token }) => logProbability(prompt, token)))),
    ];
    if (scores.every((one) => one === 0)) {
      throw new EngineAnswerError(
        null,
        "the engine gives no raw log-probabilities: vLLM's --logprobs-mode must be raw_logprobs",
      );
    }
    const logOdds = steps.reduce((sum, { sign }, at) => sum + sign * (scores[at] ?? Number.NaN), 0);
    return { logOdds: Number(logOdds.toFixed(4)), promptTokens: prompt.length };
  };
}
