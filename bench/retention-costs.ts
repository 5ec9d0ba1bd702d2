import { countO200k, encodeO200k } from "../src/cli/o200k.js";
import { SimulatedCache } from "../src/core/cache/simulated-cache.js";
import { pricedModel } from "../src/core/cost/prices.js";
import {
  type ChatMessage,
  ENGINE_MODELS,
  type EngineModel,
  FIXED_RETENTIONS,
  type MemoryId,
  ORDERING_POLICIES,
  type PolicyName,
  promptCost,
  type RetrievedMemory,
} from "../src/core/index.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import { answerOf, readmeMessages } from "../src/eval/base/hand-built.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import { type ReplayedRequest, replayTrace, type TraceReplay } from "../src/eval/replay/replay-trace.js";
import { mean } from "./statistics.js";

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
  /** Null: questions are single prompts. */
  readonly answerTokens: number | null;
  readonly turns: number;
}

/** How memprefix composes them; by default with `prefix-exact`, without a budget. */
export interface Composing extends Pick<TraceReplay, "retention" | "engine" | "annotations"> {
  readonly policy?: PolicyName;
  readonly budgetRatio?: number | null;
}

/** Every conversation's prompts as memprefix composes them. */
export function servedWith(
  { traces, k, answerTokens, turns }: Conversations,
  { policy = "prefix-exact", budgetRatio = null, ...composing }: Composing,
): (readonly Served[])[] {
  const answers =
    answerTokens === null
      ? ({ layout: "single" } as const)
      : ({ layout: "conversation", answer: answerOf(answerTokens) } as const);
  const options = { k, policy: ORDERING_POLICIES[policy], budgetRatio, limit: turns, ...answers, ...composing };
  const tokens = { encode: encodeO200k, countTokens: countO200k };
  return traces.map((trace) => replayTrace(trace, new SimulatedCache("radix"), tokens, options).requests);
}

/** Builds a prompt by hand, without memprefix: what a search returned, and the conversation up to the question. */
export type BuildByHand = (memories: readonly RetrievedMemory[], history: readonly ChatMessage[]) => ChatMessage[];

/** The same conversations with prompts built by hand; by default as Mem0's README has them, with the memories in the system prompt. */
export function servedByHand(
  { traces, k, answerTokens, turns }: Conversations,
  build: BuildByHand = readmeMessages,
): (readonly Served[])[] {
  return traces.map((trace) => {
    const cache = new SimulatedCache("radix");
    const tokenize = chatTokenizer(encodeO200k);
    let history: ChatMessage[] = [];
    return trace.questions.slice(0, turns).map(({ question, retrieved }): Served => {
      history.push({ role: "user", content: question });
      const order = retrieved.slice(0, k);
      const messages = build(
        order.map((at) => ({ id: String(at) as MemoryId, text: trace.memories[at]?.memory ?? "" })),
        history,
      );
      const tokens = tokenize(messages);
      const cachedTokens = cache.serve(tokens);
      if (answerTokens === null) history = [];
      else {
        const answered: ChatMessage = { role: "assistant", content: answerOf(answerTokens) };
        history.push(answered);
        cache.serve(tokenize([...messages, answered]));
      }
      return { promptTokens: tokens.length, cachedTokens, order };
    });
  });
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
  return FIXED_RETENTIONS.map((retention) => servedWith(conversations, { retention, engine: LAWS.gpu }));
}
