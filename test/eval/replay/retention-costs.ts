import { countO200k, encodeO200k } from "../../../src/cli/o200k.js";
import { pricedModel } from "../../../src/core/cost/prices.js";
import {
  type ChatMessage,
  ENGINE_MODELS,
  type EngineModel,
  FIXED_RETENTIONS,
  type MemoryId,
  ORDERING_POLICIES,
  type PolicyName,
  promptCost,
  type RetentionName,
  type RetrievedMemory,
} from "../../../src/core/index.js";
import { answerOf, readmeMessages } from "../../../src/eval/base/hand-built.js";
import type { RecordedTrace } from "../../../src/eval/replay/recorded-trace.js";
import { type ReplayedRequest, replayTrace } from "../../../src/eval/replay/replay-trace.js";
import { chatTokenizer } from "../../../src/simulator/chat-tokens.js";
import { simulatedCache } from "../../../src/simulator/simulated-cache.js";

/** A prompt as an endless token-exact cache saw it, and the indexes of the memories in it. */
export type Served = Pick<ReplayedRequest, "promptTokens" | "cachedTokens" | "order">;

/** Exact caches, so that the law alone decides. */
const exact = (model: EngineModel): EngineModel => ({ ...model, blockTokens: 1, minimumPrefixTokens: 1 });
export const LAWS = {
  cpu: exact(ENGINE_MODELS.cpu),
  gpu: exact(ENGINE_MODELS.gpu),
  hosted: exact(ENGINE_MODELS.hosted),
  OpenAI: exact(pricedModel({ host: null, family: "openai" }, null)),
  /** Fitted by memprefix itself to vLLM 0.32 with SmolLM2-135M on two cores, answers of 16 tokens (`npm run bench -- engines`). */
  "vllm on a CPU": {
    cost: { kind: "time", fixedMs: 0, perTokenMs: 1.2, perPairMs: 9.3e-4 },
    blockTokens: 1,
    minimumPrefixTokens: 1,
    perHeldTokenMs: 0.077,
  } satisfies EngineModel,
} as const;

/** Conversations that are compared: how much each question retrieves, how many tokens each answer has, how many turns. */
export interface Conversations {
  readonly traces: readonly RecordedTrace[];
  readonly k: number;
  readonly answerTokens: number;
  readonly turns: number;
}

/** Every conversation's prompts as memprefix composes them. */
export function servedWith(
  { traces, k, answerTokens, turns }: Conversations,
  retention: RetentionName,
  engine: EngineModel,
) {
  const options = { k, policy: ORDERING_POLICIES["prefix-exact"], budgetRatio: null, layout: "conversation" } as const;
  const tokens = { encode: encodeO200k, countTokens: countO200k };
  return traces.map((trace): readonly Served[] => {
    const conversation = { ...options, limit: turns, retention, engine, answer: answerOf(answerTokens) };
    return replayTrace(trace, simulatedCache("radix"), tokens, conversation).requests;
  });
}

/** Builds a prompt by hand, without memprefix: what a search returned, and the conversation up to the question. */
export type BuildByHand = (memories: readonly RetrievedMemory[], history: readonly ChatMessage[]) => ChatMessage[];

/** The same conversations with prompts built by hand; by default as Mem0's README has them, with the memories in the system prompt. */
export function servedByHand(
  { traces, k, answerTokens, turns }: Conversations,
  build: BuildByHand = readmeMessages,
): (readonly Served[])[] {
  return traces.map((trace) => {
    const cache = simulatedCache("radix");
    const tokenize = chatTokenizer(encodeO200k);
    const history: ChatMessage[] = [];
    return trace.questions.slice(0, turns).map(({ question, retrieved }): Served => {
      history.push({ role: "user", content: question });
      const order = retrieved.slice(0, k);
      const messages = build(
        order.map((at) => ({ id: String(at) as MemoryId, text: trace.memories[at]?.memory ?? "" })),
        history,
      );
      const tokens = tokenize(messages);
      const cachedTokens = cache.serve(tokens);
      const answered: ChatMessage = { role: "assistant", content: answerOf(answerTokens) };
      history.push(answered);
      cache.serve(tokenize([...messages, answered]));
      return { promptTokens: tokens.length, cachedTokens, order };
    });
  });
}

/** Each question as a single prompt that Mem0's README builds. */
export function singlesByHand({ traces, k, turns }: Omit<Conversations, "answerTokens">): (readonly Served[])[] {
  return traces.map((trace) => {
    const cache = simulatedCache("radix");
    const tokenize = chatTokenizer(encodeO200k);
    return trace.questions.slice(0, turns).map(({ question, retrieved }): Served => {
      const order = retrieved.slice(0, k);
      const memories = order.map((at) => ({ id: String(at) as MemoryId, text: trace.memories[at]?.memory ?? "" }));
      const tokens = tokenize(readmeMessages(memories, [{ role: "user", content: question }]));
      return { promptTokens: tokens.length, cachedTokens: cache.serve(tokens), order };
    });
  });
}

/** Each question as a single prompt that memprefix composes. */
export function singlesWith(
  { traces, k, turns }: Omit<Conversations, "answerTokens">,
  policy: PolicyName,
  budgetRatio: number | null,
  engine: EngineModel = ENGINE_MODELS.gpu,
  annotations = true,
): (readonly Served[])[] {
  const options = {
    k,
    annotations,
    policy: ORDERING_POLICIES[policy],
    budgetRatio,
    layout: "single",
    limit: turns,
    engine,
  } as const;
  const tokens = { encode: encodeO200k, countTokens: countO200k };
  return traces.map((trace) => replayTrace(trace, simulatedCache("radix"), tokens, options).requests);
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Each conversation's cost per turn. */
export function costs(served: readonly (readonly Served[])[], engine: EngineModel): number[] {
  return served.map((requests) =>
    mean(requests.map(({ promptTokens, cachedTokens }) => promptCost(engine, promptTokens, cachedTokens))),
  );
}

/** Tokens computed per turn. */
export function uncached(served: readonly (readonly Served[])[]): number {
  return mean(served.map((requests) => mean(requests.map((request) => request.promptTokens - request.cachedTokens))));
}

/** Every fixed retention's prompts; they do not depend on the engine. */
export function servedFixed(conversations: Conversations): readonly (readonly (readonly Served[])[])[] {
  return FIXED_RETENTIONS.map((retention) => servedWith(conversations, retention, LAWS.gpu));
}
