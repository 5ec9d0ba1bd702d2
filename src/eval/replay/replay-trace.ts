/*
 * Recorded searches, composed again without a memory source or an engine; a simulated prefix cache costs every prompt.
 *
 * Enters: a trace (memories, questions, search results), an ordering policy, a layout and a cache.
 * Leaves: every prompt with its tokens, cached tokens and memories, and their sums; for a batch also its execution order. Pure but for the
 * cache: the same trace and options give the same figures.
 */

import { type PrefixCache, SimulatedCache } from "../../core/cache/simulated-cache.js";
import {
  type Annotations,
  type ChatMessage,
  Conversation,
  type ConversationId,
  compose,
  DEFAULT_ENGINE_MODEL,
  DEFAULT_RETENTION,
  EMPTY_SCOPE,
  ENGINE_MODELS,
  type EngineModel,
  endlessLookup,
  IN_FLIGHT_MS,
  type RetentionName,
  type ScopePolicy,
  ScopeState,
  type TokenCounter,
  takeReport,
} from "../../core/index.js";
import { chatTokenizer, type Encode } from "../base/chat-tokens.js";
import { INSTRUCTION, PAUSE_MS } from "../base/hand-built.js";
import { MemoryList, PromptMemories } from "../base/prompt-memories.js";
import { memoriesOf, type RecordedTrace, saidTo } from "./recorded-trace.js";

/** One composed and simulated prompt. Blocks are memory indexes of the trace. */
export interface ReplayedRequest
  extends Pick<ReplayedPrompt, "order" | "carried" | "expectedCachedTokens" | "retrievedTokens" | "memoryTokens"> {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly uncachedTokens: number;
}

export interface ReplayTotals
  extends Omit<ReplayedPrompt, "tokens" | "answered" | "order" | "carried" | "expectedCachedTokens" | "report"> {
  readonly requests: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly uncachedTokens: number;
  /** Memory tokens in all prompts ÷ retrieved; null where nothing was retrieved. */
  readonly sentRatio: number | null;
  /** The highest such ratio of a single prompt. */
  readonly largestSentRatio: number | null;
}

export interface ReplayedTrace {
  readonly requests: readonly ReplayedRequest[];
  readonly totals: ReplayTotals;
}

export interface TraceReplay extends ReplayOptions {
  /** Whether the composer gets a usage report of each prompt. Default: no. */
  readonly reports?: boolean | undefined;
}

/** Composes a trace and sends each prompt through a simulated cache. */
export function replayTrace(
  trace: RecordedTrace,
  cache: PrefixCache,
  tokens: TextTokens,
  options: TraceReplay,
): ReplayedTrace {
  const requests: ReplayedRequest[] = [];
  const sums = { prefilledMemoryTokens: 0, evidence: 0, evidenceInPrompt: 0 };
  let largestSentRatio: number | null = null;
  for (const prompt of composeTrace(trace, tokens, options)) {
    const promptTokens = prompt.tokens.length;
    const cachedTokens = cache.serve(prompt.tokens);
    if (prompt.answered !== null) cache.serve(prompt.answered);
    const uncachedTokens = promptTokens - cachedTokens;
    const { order, carried, expectedCachedTokens, retrievedTokens, memoryTokens } = prompt;
    requests.push({
      ...{ order, carried, promptTokens, expectedCachedTokens, cachedTokens, uncachedTokens },
      ...{ retrievedTokens, memoryTokens },
    });
    sums.prefilledMemoryTokens += prompt.prefilledMemoryTokens;
    sums.evidence += prompt.evidence;
    sums.evidenceInPrompt += prompt.evidenceInPrompt;
    const sent = ratioOf(prompt);
    if (sent !== null) largestSentRatio = Math.max(sent, largestSentRatio ?? 0);
    if (options.reports) prompt.report(cachedTokens);
  }
  const sum = (of: (request: ReplayedRequest) => number) => requests.reduce((total, request) => total + of(request), 0);
  const totals = {
    ...sums,
    requests: requests.length,
    promptTokens: sum((request) => request.promptTokens),
    cachedTokens: sum((request) => request.cachedTokens),
    uncachedTokens: sum((request) => request.uncachedTokens),
    retrievedTokens: sum((request) => request.retrievedTokens),
    memoryTokens: sum((request) => request.memoryTokens),
  };
  return { requests, totals: { ...totals, sentRatio: ratioOf(totals), largestSentRatio } };
}

function ratioOf({ memoryTokens, retrievedTokens }: Pick<ReplayedPrompt, "memoryTokens" | "retrievedTokens">) {
  return retrievedTokens === 0 ? null : memoryTokens / retrievedTokens;
}

export interface ReplayOptions {
  readonly k: number;
  readonly policy: ScopePolicy;
  /** Most memory tokens sent ÷ retrieved, over all prompts so far; null: unbounded. */
  readonly budgetRatio: number | null;
  /** The same bound on each prompt. Default: unbounded. */
  readonly budgetEach?: number | null | undefined;
  readonly layout: "single" | "conversation";
  /** Default: `keep`. */
  readonly retention?: RetentionName | undefined;
  /** Cost model of `auto`, fixed or per prompt. */
  readonly engine?: EngineModel | (() => EngineModel) | undefined;
  /** Assumed answer to each question. Default: the recorded one. */
  readonly answer?: string | undefined;
  readonly annotations?: Annotations | undefined;
  /** First questions only. */
  readonly limit?: number | undefined;
}

export interface TextTokens {
  readonly encode: Encode;
  readonly countTokens: TokenCounter;
}

/** One question's prompt. Blocks are memory indexes of the trace; memory tokens are those of the blocks' lines. */
export interface ReplayedPrompt {
  readonly tokens: readonly number[];
  /** The prompt with its answer, which engines cache too; null where no prompt follows. */
  readonly answered: readonly number[] | null;
  readonly expectedCachedTokens: number;
  /** The prompt's blocks, carried ones and those of earlier turns included. */
  readonly order: readonly number[];
  readonly carried: readonly number[];
  readonly retrievedTokens: number;
  readonly memoryTokens: number;
  /** Memory tokens after the longest block prefix shared with an earlier prompt: an unlimited, block-exact cache. */
  readonly prefilledMemoryTokens: number;
  /** The question's evidence ids, and how many belong to a block in the prompt. */
  readonly evidence: number;
  readonly evidenceInPrompt: number;
  /** Reports this prompt's cached tokens to the composer; call it before the next prompt. */
  report(cachedTokens: number): void;
}

/**
 * Composes a trace's prompts one by one, for one new user. A generator, so that several users can take turns at one cache; it reads no
 * cache, so that one composition can be costed on many.
 */
export function* composeTrace(
  trace: RecordedTrace,
  { encode, countTokens }: TextTokens,
  options: ReplayOptions,
): Generator<ReplayedPrompt, void, undefined> {
  const state = new ScopeState(EMPTY_SCOPE, countTokens);
  const tokenize = chatTokenizer(encode);
  const turns = new Conversation([]);
  const history: ChatMessage[] = [];
  /** Block sequences served: an unlimited cache, exact on blocks. */
  const served = new SimulatedCache("radix");
  const list = new MemoryList(memoriesOf(trace), countTokens);
  const standing = new PromptMemories(list);
  const { budgetEach = null, engine = ENGINE_MODELS[DEFAULT_ENGINE_MODEL] } = options;
  for (const [at, recorded] of trace.questions.slice(0, options.limit).entries()) {
    const { question, retrieved, evidence } = recorded;
    const now = at * PAUSE_MS;
    const asked = retrieved.slice(0, options.k);
    const retrievedTokens = list.tokens(asked);
    const spoken: ChatMessage = { role: "user", content: question };
    const isConversation = options.layout === "conversation";
    const composition = compose(state, {
      conversation: isConversation ? { id: "replay" as ConversationId, turns } : null,
      messages: [{ role: "system", content: INSTRUCTION }, ...(isConversation ? history : []), spoken],
      memories: list.retrieved(asked),
      policy: options.policy,
      memoryBudgetTokens: budgetEach === null ? null : Math.floor(budgetEach * retrievedTokens),
      memoryBudgetRatio: options.budgetRatio,
      annotations: options.annotations ?? true,
      cache: endlessLookup(),
      now,
      retention: options.retention ?? DEFAULT_RETENTION,
      engine: typeof engine === "function" ? engine() : engine,
      countTokens,
      isOurs: () => false,
    });
    const answered: ChatMessage = { role: "assistant", content: options.answer ?? saidTo(recorded) };
    history.push(spoken, answered);
    const { order, carried } = standing.take(composition.memories, composition.plan, composition.messages);
    const tokens = tokenize(composition.messages);
    const held = served.admit(order);
    yield {
      tokens,
      answered: isConversation ? tokenize([...composition.messages, answered]) : null,
      order,
      carried,
      retrievedTokens,
      memoryTokens: list.tokens(order),
      prefilledMemoryTokens: list.tokens(order.slice(held)),
      evidence: evidence.length,
      evidenceInPrompt: list.evidenceIn(order, evidence),
      expectedCachedTokens: composition.plan.expectedCachedTokens,
      report(cachedTokens) {
        const { leaf, turn, plan, headTokens } = composition;
        const report = { cachedTokens, promptTokens: tokens.length };
        takeReport(
          state.index,
          { leaf, turn: turn.id, plan, grounds: { settledAt: now - IN_FLIGHT_MS, headTokens } },
          report,
          now,
        );
      },
    };
  }
}
