import { z } from "zod";

const listed = z.object({ token: z.string().catch(""), logprob: z.number() });
const position = z.object({ token: z.string().catch(""), top_logprobs: z.array(listed).catch([]) });
const answer = z.object({
  choices: z.tuple([z.object({ logprobs: z.object({ content: z.array(position) }) })]).rest(z.unknown()),
});

/** What an answer says of its first token. */
export interface FirstToken {
  /** The likeliest token in its place, whichever was drawn: the same for the same prompt. What was drawn where none is listed. */
  readonly likeliest: string;
  /** Natural logarithms of the probabilities of the likeliest tokens in its place. */
  readonly logProbabilities: readonly number[];
}

/** Reads an answer that was asked for `logprobs`. Null: it gives none. `none`: it has no first token. */
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

/**
 * Whether a token is a mark of the model's own and no beginning of an answer: where a thought or a channel begins, in the templates of
 * those that think first. It is always certain, and says nothing.
 */
export function isMark(token: string): boolean {
  return /^\s*(?:<[|｜]?[\w|｜▁-]+[|｜]?>|\[\/?[A-Z_]+\])\s*$/.test(token) || token === "";
}

/** The client's fields that say how much is answered, in what form, and how it is drawn; a try has its own. */
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

/**
 * The client's request, for its answer's first token and the likeliest tokens in its place. What the engine makes the prompt from stays
 * (tools, a template's arguments), so that the prompt is the client's.
 *
 * @param top tokens to list
 */
export function firstTokenBody(own: Readonly<Record<string, unknown>>, top: number): Readonly<Record<string, unknown>> {
  const kept = Object.fromEntries(Object.entries(own).filter(([name]) => !OWN_TO_ANSWER.has(name)));
  const most = own["max_completion_tokens"] == null ? "max_tokens" : "max_completion_tokens";
  // Some engines give the probabilities that they draw from; these settings leave them as the model has them.
  return { ...kept, [most]: 1, temperature: 1, top_p: 1, logprobs: true, top_logprobs: top };
}

/** Fields by which engines hold an answer to a grammar. */
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

/** Whether a request fixes how its answer begins, so that its first token says nothing of how sure the engine is. */
export function fixesStart(body: Readonly<Record<string, unknown>>): boolean {
  const format = body["response_format"];
  const isText = typeof format !== "object" || format === null || (format as { type?: unknown }).type === "text";
  const tool = body["tool_choice"] ?? body["function_call"];
  const isFree = tool == null || tool === "auto" || tool === "none";
  return !isText || !isFree || GRAMMARS.some((name) => body[name] != null);
}
