import { z } from "zod";
import { isRecord, type JsonObject } from "../../core/text/json.js";

const listed = z.object({ token: z.string().catch(""), logprob: z.number() });
const position = z.object({ token: z.string().catch(""), top_logprobs: z.array(listed).catch([]) });
const answer = z.object({
  choices: z.tuple([z.object({ logprobs: z.object({ content: z.array(position) }) })]).rest(z.unknown()),
});

export interface FirstToken {
  /** The likeliest first token, which depends on the prompt only; the sampled one if no alternatives are listed. */
  readonly likeliest: string;
  /** Natural logarithms, of the listed alternatives. */
  readonly logProbabilities: readonly number[];
}

/** Reads an answer to a request with `logprobs`. Null: it has none. `none`: it has no first token. */
export function readFirstToken(given: unknown): FirstToken | "none" | null {
  const read = answer.safeParse(given);
  if (!read.success) return null;
  const [first] = read.data.choices[0].logprobs.content;
  if (first === undefined) return "none";
  const [likeliest] = first.top_logprobs.toSorted((a, b) => b.logprob - a.logprob);
  return {
    likeliest: (likeliest ?? first).token,
    logProbabilities: first.top_logprobs.map(({ logprob }) => logprob),
  };
}

/** Whether a token is special: reasoning models begin a thought with one, at a probability near 1, which carries no information. */
export function isMark(token: string): boolean {
  return /^\s*(?:<[|｜]?[\w|｜▁-]+[|｜]?>|\[\/?[A-Z_]+\])\s*$/.test(token) || token === "";
}

const OWN_TO_ANSWER: ReadonlySet<string> = new Set([
  "max_completion_tokens",
  "max_tokens",
  "metadata",
  "min_tokens",
  "n",
  "stop",
  "store",
  "stream",
  "stream_options",
]);

/** The client's request for one token with its `top` likeliest alternatives. Fields that enter the prompt stay. */
export function firstTokenBody(own: JsonObject, top: number): JsonObject {
  const kept = Object.fromEntries(Object.entries(own).filter(([name]) => !OWN_TO_ANSWER.has(name)));
  const most = own["max_completion_tokens"] == null ? "max_tokens" : "max_completion_tokens";
  // Some engines report sampling probabilities; these settings leave them unscaled.
  return { ...kept, [most]: 1, temperature: 1, top_p: 1, logprobs: true, top_logprobs: top };
}

const GRAMMARS = [
  "ebnf",
  "grammar",
  "guided_grammar",
  "guided_json",
  "guided_regex",
  "json_schema",
  "regex",
  "structured_outputs",
];

/** Whether a request constrains its answer's beginning, so that the first token's probability says nothing about the model's confidence. */
export function fixesStart(body: JsonObject): boolean {
  const format = body["response_format"];
  const isText = !isRecord(format) || format["type"] === "text";
  const tool = body["tool_choice"] ?? body["function_call"];
  const isFree = tool == null || tool === "auto" || tool === "none";
  return !isText || !isFree || GRAMMARS.some((name) => body[name] != null);
}
