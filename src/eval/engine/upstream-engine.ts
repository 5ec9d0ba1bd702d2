import { createHash } from "node:crypto";
import { z } from "zod";
import type { EngineUsage } from "../../apis/api/usage.js";
import { APIS } from "../../apis/apis.js";
import type { ChatMessage } from "../../core/index.js";
import { isRecord, listIn, parsedJson, record, text } from "../../core/text/json.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import { ENGINES } from "../../engines/adapters/engines.js";
import { eventsOf, wholeOf } from "../../engines/upstream/answer-body.js";
import { ModelLimits, promptTokensWithin } from "../../engines/upstream/model-limits.js";
import { OWN_NAME, type Upstream } from "../../engines/upstream/upstream.js";
import { AdaptiveDepth } from "../../service/chat/adaptive-depth.js";
import type { AnswerLikelihood, AnswerScore, EngineIdentity } from "../base/run-record.js";
import type { EngineAnswer, EnginePrompt, MeasuredEngine } from "./measured-engine.js";

/** An engine did not answer a prompt. The message quotes the engine's own, truncated. */
export class EngineAnswerError extends Error {
  override readonly name = "EngineAnswerError";
  constructor(
    readonly status: number | null,
    message: string,
  ) {
    super(message);
  }
}

export interface UpstreamEngineOptions {
  readonly upstream: Upstream;
  readonly model: string;
  readonly family: EngineName;
  readonly maxTokens: number;
  /** Different for every run, so that no prompt of an earlier run is cached. */
  readonly salt: string;
  readonly scores: readonly AnswerScore[];
}

const UNASKED: EngineAnswer = {
  ...{ promptTokens: null, cachedTokens: null, answerTokens: null },
  ...{ ttftMs: null, totalMs: null, answer: null },
};

/** Engines that honour `cache_salt`: a prompt never hits the cache of another salt. */
export const SALTED_FAMILIES: ReadonlySet<EngineName> = new Set(["vllm"]);
const LIST_TIMEOUT_MS = 10_000;
/** Families whose newer models reject `max_tokens`. */
const COUNTS_COMPLETION: ReadonlySet<EngineName> = new Set(["openai", "openai-breakpoints"]);

/** An engine with an OpenAI-compatible API. Answers are streamed, to measure the time to the first token. */
export function upstreamEngine(options: UpstreamEngineOptions): MeasuredEngine {
  const { upstream, model, family, maxTokens, salt, scores } = options;
  const likely = scores.includes("likelihood");
  const isSalted = SALTED_FAMILIES.has(family);
  const lengthField = COUNTS_COMPLETION.has(family) ? "max_completion_tokens" : "max_tokens";
  const ask = async (
    { messages, fields, headers }: EnginePrompt,
    own: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ) => {
    const body = {
      ...fields,
      model,
      messages,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
      [lengthField]: maxTokens,
      ...own,
    };
    return await completion(upstream, family, { body: JSON.stringify(body), headers }, signal);
  };
  let limit: Promise<number | null> | undefined;
  const depths = new AdaptiveDepth({
    upstream,
    readUsage: (answer) => ENGINES[family].readUsage(answer),
    clock: () => performance.now(),
  });
  return {
    kind: "url",
    losesCache: scores.includes("words"),
    family,
    check: async (signal) => {
      const messages: ChatMessage[] = [{ role: "user", content: "Say yes." }];
      if (scores.includes("words")) await ask({ messages, fields: {}, headers: {} }, {}, signal);
      const send = jsonSender(upstream, signal);
      if (likely) await answerLikelihood(send, { model, messages, answer: "Yes.", salt });
      return likely ? await identityOf(send, model) : null;
    },
    open: async (arm, conversation) => {
      const own = armSalt(salt, arm.id, conversation);
      const salted = isSalted ? { cache_salt: own } : {};
      limit ??= listedLimit(options);
      return {
        promptTokens: await limit,
        mark: isSalted ? null : markOf(own),
        chooseDepth: (tenant, settings, draftAt, signal) =>
          depths.choose(
            tenant,
            { api: APIS.chat, body: { model, ...salted }, written: JSON.stringify, query: "", headers: [] },
            settings,
            draftAt,
            signal,
          ),
        ask: async (prompt, { gold }, signal) => {
          const answer = scores.includes("words") ? await ask(prompt, salted, signal) : UNASKED;
          if (!likely || gold === null) return answer;
          const given = { model, messages: prompt.messages, answer: gold, salt: own };
          const { promptTokens, likelihood } = await answerLikelihood(jsonSender(upstream, signal), given);
          return { ...answer, promptTokens: answer.promptTokens ?? promptTokens, likelihood };
        },
        repeat: () => {},
      };
    },
  };
}

/** Most prompt tokens by the engine's list of models, as the service reads it; null where it gives none. */
async function listedLimit({ upstream, model, maxTokens }: UpstreamEngineOptions): Promise<number | null> {
  try {
    const listed = await jsonSender(upstream, AbortSignal.timeout(LIST_TIMEOUT_MS))("models", undefined);
    const limit = ModelLimits.read(listed)?.of(model) ?? null;
    return limit && promptTokensWithin(limit, maxTokens);
  } catch {
    // The prompts will show whether the engine can be reached.
    return null;
  }
}

export function jsonSender(upstream: Upstream, signal: AbortSignal): SendJson {
  return async (path, body) => {
    const call =
      body === undefined
        ? ({ method: "GET", headers: [OWN_NAME], body: null } as const)
        : ({ method: "POST", headers: [], body: JSON.stringify(body) } as const);
    const answer = await upstream.send({ path, query: "", ...call }, signal);
    return refusedOr(answer.status, parsedJson(await wholeOf(answer.body, upstream.name)));
  };
}

/** Returns the engine's JSON; throws {@link EngineAnswerError} for an error status. */
function refusedOr(status: number, json: unknown): unknown {
  if (status < 400) return json;
  const says = readErrorMessage(json);
  throw new EngineAnswerError(status, `the engine answered with status ${status}${says === null ? "" : `: ${says}`}`);
}

/** Separates an arm's prompts of one conversation from all others, in this run and every other. */
function armSalt(salt: string, arm: string, conversation: string): string {
  return createHash("sha256")
    .update(JSON.stringify([salt, arm, conversation]))
    .digest("hex")
    .slice(0, 24);
}

/** First line of every prompt, for engines that honour no salt. */
function markOf(own: string): string {
  return `Session ${own}.`;
}

async function completion(
  upstream: Upstream,
  family: EngineName,
  { body, headers }: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<EngineAnswer> {
  const startedAt = performance.now();
  const call = { method: "POST", path: "chat/completions", query: "", headers: Object.entries(headers), body } as const;
  const response = await upstream.send(call, signal);
  const type = response.headers.find(([name]) => name.toLowerCase() === "content-type")?.[1] ?? "";
  if (response.status >= 400 || !type.includes("text/event-stream")) {
    const json = refusedOr(response.status, parsedJson(await wholeOf(response.body, upstream.name)));
    const answer = completionText(json);
    if (answer === null) throw new EngineAnswerError(response.status, "the engine's answer is no chat completion");
    // Not streamed: the time to the first token is unknown.
    return {
      ...countsIn(ENGINES[family].readUsage(json)),
      ttftMs: null,
      totalMs: performance.now() - startedAt,
      answer: answer.trim(),
    };
  }
  const reader = APIS.chat.answerReader();
  let answer = "";
  let isWhole = false;
  for await (const { data, isLast } of eventsOf(response.body)) {
    if (isLast) isWhole = true;
    if (data === undefined) continue;
    const says = readErrorMessage(data);
    if (says !== null) throw new EngineAnswerError(response.status, `the engine broke off its answer: ${says}`);
    reader.take(data, performance.now());
    const { delta, finish_reason: finish } = record(listIn(record(data)["choices"])[0]);
    isWhole ||= typeof finish === "string";
    answer += text(record(delta)["content"]);
  }
  if (!isWhole) throw new EngineAnswerError(response.status, "the engine's stream ended before its answer did");
  const { firstTokenAt, reported } = reader;
  return {
    ...countsIn(ENGINES[family].readUsage(reported)),
    ttftMs: firstTokenAt === null ? null : firstTokenAt - startedAt,
    totalMs: performance.now() - startedAt,
    answer: answer.trim(),
  };
}

function countsIn({ promptTokens, cachedTokens, completionTokens }: EngineUsage) {
  return { promptTokens, cachedTokens, answerTokens: completionTokens };
}

/*
 * An OpenAI-compatible API's answers, as far as an evaluation reads them. Other fields are ignored.
 */

const MAX_QUOTED = 300;

function readErrorMessage(answer: unknown): string | null {
  const { error } = record(answer);
  const says = isRecord(error) ? error["message"] : error;
  return typeof says === "string" ? says.slice(0, MAX_QUOTED) : null;
}

/**
 * The text of a chat completion that was not streamed; empty for a refusal or a tool call, null for anything else. Mistral's reasoning models
 * answer in parts, some of which are not text.
 */
export function completionText(answer: unknown): string | null {
  const message = record(listIn(record(answer)["choices"])[0])["message"];
  if (!isRecord(message)) return null;
  const content = message["content"];
  if (!Array.isArray(content)) return text(content);
  return content.map((part) => (record(part)["type"] === "text" ? text(record(part)["text"]) : "")).join("");
}

/** Sends JSON to a path of the engine (`UpstreamCall.path`); without a body, as GET. Rejects for an error status. */
export type SendJson = (path: string, body: unknown) => Promise<unknown>;

const tokenized = z.looseObject({ tokens: z.array(z.int()).min(1) });

/** The tokens in vLLM's answer to `/tokenize`. */
export function tokensIn(answer: unknown): readonly number[] {
  return tokenized.parse(answer).tokens;
}

/** vLLM's completion with `prompt_logprobs`: the likely tokens at each position of the prompt. */
const scored = z.looseObject({
  choices: z.tuple([
    z.looseObject({
      prompt_logprobs: z.array(z.record(z.string(), z.looseObject({ logprob: z.number() })).nullable()),
    }),
  ]),
});
const version = z.looseObject({ version: z.string() });
const models = z.looseObject({ data: z.array(z.looseObject({ id: z.string(), root: z.string().nullish() })) });

export interface LikelihoodAfter {
  readonly promptTokens: number;
  readonly likelihood: AnswerLikelihood;
  /** Log-probabilities of the first token's candidates, likeliest first. */
  readonly first: readonly number[];
}

/**
 * The right answer's likelihood after a prompt, by vLLM: sends the chat's tokens with the answer's after them, and reads `top`
 * log-probabilities of each. vLLM computes such a prompt whole, cached or not.
 */
export async function answerLikelihood(
  send: SendJson,
  given: {
    readonly model: string;
    readonly messages: readonly ChatMessage[];
    readonly answer: string;
    readonly salt?: string;
    readonly top?: number;
  },
): Promise<LikelihoodAfter> {
  const { model, messages, answer, salt, top = 0 } = given;
  const chat = tokensIn(await send("/tokenize", { model, messages }));
  const own = tokensIn(await send("/tokenize", { model, prompt: answer, add_special_tokens: false }));
  const prompt = [...chat, ...own];
  const body = { model, prompt, max_tokens: 1, temperature: 0, prompt_logprobs: top, cache_salt: salt };
  const [{ prompt_logprobs: logprobs }] = scored.parse(await send("completions", body)).choices;
  const nats = own.reduce((sum, token, at) => {
    const one = logprobs[chat.length + at]?.[token];
    if (one === undefined) throw new Error("the engine gave no log-probability of a token of the answer");
    return sum - one.logprob;
  }, 0);
  const first = Object.values(logprobs[chat.length] ?? {}).map(({ logprob }) => logprob);
  return {
    promptTokens: chat.length,
    likelihood: { nats, tokens: own.length },
    first: first.toSorted((a, b) => b - a),
  };
}

/** vLLM's version, and the folder or repository of its weights. */
async function identityOf(send: SendJson, model: string): Promise<EngineIdentity> {
  const served = models.safeParse(await send("models", undefined)).data?.data.find(({ id }) => id === model);
  const said = await send("/version", undefined).then(version.safeParse, () => undefined);
  return { version: said?.data?.version ?? null, weights: served?.root?.split(/[\\/]/).slice(-2).join("/") ?? null };
}
