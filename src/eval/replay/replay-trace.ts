/*
 * Recorded searches, composed again without a memory source or an engine, every prompt costed on a simulated prefix cache.
 *
 * Enters: a trace (memories, questions, what a search returned for each), an ordering policy, a layout and a cache.
 * Leaves: every prompt with its tokens, its cached tokens and its memories, and their sums; a batch also its execution order.
 * Pure but for the cache: the same trace and options give the same figures.
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
  type ResidencyModel,
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
  /** Tokens that the simulated cache held. */
  readonly cachedTokens: number;
  readonly uncachedTokens: number;
}

/** Sums over all requests. */
export interface ReplayTotals
  extends Omit<ReplayedPrompt, "tokens" | "answered" | "order" | "carried" | "expectedCachedTokens" | "report"> {
  readonly requests: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly uncachedTokens: number;
  /** Memory tokens in the prompts ÷ retrieved, over all of them; null where nothing was retrieved. */
  readonly sentRatio: number | null;
  /** The same of the single prompt in which it is largest. */
  readonly largestSentRatio: number | null;
}

export interface ReplayedTrace {
  readonly requests: readonly ReplayedRequest[];
  readonly totals: ReplayTotals;
}

/** How a trace is replayed. */
export interface TraceReplay extends ReplayOptions {
  /** Whether the composer gets a report of what the cache held of each prompt. Default: no. */
  readonly reports?: boolean | undefined;
}

/** Drives the composer over a trace, each prompt through a simulated cache. Pure but for the cache that it fills. */
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
  const { sentRatio, ...totals } = totalsOf(requests);
  return { requests, totals: { ...totals, ...sums, sentRatio, largestSentRatio } };
}

/** Sums over requests. */
export function totalsOf(requests: readonly Omit<ReplayedRequest, "expectedCachedTokens">[]) {
  const sum = (of: (request: (typeof requests)[number]) => number) =>
    requests.reduce((total, request) => total + of(request), 0);
  const totals = {
    requests: requests.length,
    promptTokens: sum((request) => request.promptTokens),
    cachedTokens: sum((request) => request.cachedTokens),
    uncachedTokens: sum((request) => request.uncachedTokens),
    retrievedTokens: sum((request) => request.retrievedTokens),
    memoryTokens: sum((request) => request.memoryTokens),
  };
  return { ...totals, sentRatio: ratioOf(totals) };
}

function ratioOf({ memoryTokens, retrievedTokens }: Pick<ReplayedPrompt, "memoryTokens" | "retrievedTokens">) {
  return retrievedTokens === 0 ? null : memoryTokens / retrievedTokens;
}

/** How prompts are composed from a trace. */
export interface ReplayOptions {
  readonly k: number;
  readonly policy: ScopePolicy;
  /** Memory tokens sent ÷ retrieved, over all prompts so far, at most; null: no such budget. */
  readonly budgetRatio: number | null;
  /** The same of every single prompt. Default: no such budget. */
  readonly budgetEach?: number | null | undefined;
  readonly layout: "single" | "conversation";
  /** What a conversation keeps of injected memories; default `keep`. */
  readonly retention?: RetentionName | undefined;
  /** What `auto` goes by, or what it goes by at each prompt; default: the default one. */
  readonly engine?: EngineModel | (() => EngineModel) | undefined;
  /** What the engine is taken to have answered to each question; default: the recorded answer. */
  readonly answer?: string | undefined;
  /** What the composer assumes that the cache evicts. Default: nothing. */
  readonly residency?: ResidencyModel | undefined;
  /** Default: the default ones. */
  readonly annotations?: Annotations | undefined;
  /** First so many questions only. */
  readonly limit?: number | undefined;
}

/** Of one tokenizer. */
export interface TextTokens {
  readonly encode: Encode;
  readonly countTokens: TokenCounter;
}

/** One question's prompt, whole. Blocks are memory indexes of the trace; memory tokens are those of the blocks' lines. */
export interface ReplayedPrompt {
  /** All that an engine is sent: instructions, memories, annotations, history and question. */
  readonly tokens: readonly number[];
  /** The prompt with its answer, which stays in an engine's cache like what it was given; null where nothing will follow it. */
  readonly answered: readonly number[] | null;
  /** Tokens that the composer expected the cache to hold. */
  readonly expectedCachedTokens: number;
  /** The blocks as they stand in the prompt, carried ones and those of earlier turns included. */
  readonly order: readonly number[];
  readonly carried: readonly number[];
  /** Memory tokens that the question retrieved. */
  readonly retrievedTokens: number;
  /** Memory tokens in the prompt. */
  readonly memoryTokens: number;
  /** Memory tokens outside the longest block prefix shared with an earlier prompt: an unlimited, block-exact cache. */
  readonly prefilledMemoryTokens: number;
  /** Evidence ids of the question, and how many of them are of a block in the prompt. */
  readonly evidence: number;
  readonly evidenceInPrompt: number;
  /** Reports to the composer, before the next prompt, how many tokens of this one were cached. */
  report(cachedTokens: number): void;
}

/**
 * Composes a trace's prompts one by one, for one user with an empty scope. A generator, so that several users can
 * take turns at one cache; it reads no cache, so that one composition can be costed on many.
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
  /** Block sequences that were served: an endless cache that is exact on blocks. */
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
      cache: endlessLookup(options.residency),
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
        const { leaf, turn, plan } = composition;
        const report = { cachedTokens, promptTokens: tokens.length };
        takeReport(state.index, { leaf, turn: turn.id, at: now, plan }, report, now);
      },
    };
  }
}
