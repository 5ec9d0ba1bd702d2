import { z } from "zod";
import { RECORDED_CONVERSATIONS } from "../test/eval/locomo/recorded-searches.js";
import { mean } from "./statistics.js";

/** One question, asked with ever more memories; a line of `depth-qwen.jsonl` and its siblings in `bench/rows`. */
export const measuredDepths = z.object({
  conversation: z.enum(RECORDED_CONVERSATIONS),
  question: z.int(),
  /** Tokens of the right answer, and of the prompt without memories. */
  answerTokens: z.int(),
  bareTokens: z.int(),
  /** One for each depth; the last has all memories. */
  tries: z.array(z.object({ memories: z.int(), tokens: z.int(), entropy: z.number(), nats: z.number() })),
});
export type MeasuredDepths = z.output<typeof measuredDepths>;

/** Thresholds are fitted on the first conversations, and tested on the others. */
export function isTested({ conversation }: MeasuredDepths): boolean {
  return RECORDED_CONVERSATIONS.indexOf(conversation) >= 3;
}

/** Which of the tries answers a question. */
export type Rule = (one: MeasuredDepths) => number;

/** The first try whose first token has at most so many nats of entropy, else all memories, which are sent untried. */
export function sureAt(nats: number): Rule {
  return ({ tries }) => {
    const sure = tries.slice(0, -1).findIndex(({ entropy }) => entropy <= nats);
    return sure < 0 ? tries.length - 1 : sure;
  };
}

export interface Outcome {
  /** Shares of questions by the try that answers them. */
  readonly shares: readonly number[];
  /** Tokens computed up to the first token of the answers, of those without tries. */
  readonly computed: number;
  /** By question, nats a token of the right answer more than after all memories. */
  readonly nats: readonly number[];
}

/**
 * What a rule comes to. @param tried whether the prompts before the one that answers were sent, too: each begins with the memories of the
 * one before, so only its question is computed again
 */
export function outcomeOf(of: readonly MeasuredDepths[], at: Rule, tried = true): Outcome {
  const tokensAt = ({ tries }: MeasuredDepths, depth: number) => tries.at(depth)?.tokens ?? Number.NaN;
  const natsAt = ({ tries }: MeasuredDepths, depth: number) => tries.at(depth)?.nats ?? Number.NaN;
  const computed = of.map((one) => tokensAt(one, at(one)) + (tried ? at(one) * one.bareTokens : 0));
  const whole = of.map((one) => tokensAt(one, -1));
  return {
    shares: (of[0]?.tries ?? []).map((_, depth) => of.filter((one) => at(one) === depth).length / of.length),
    computed: mean(computed) / mean(whole),
    nats: of.map((one) => (natsAt(one, at(one)) - natsAt(one, -1)) / one.answerTokens),
  };
}
