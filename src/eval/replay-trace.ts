import {
  type ChatMessage,
  Conversation,
  type ConversationId,
  compose,
  DEFAULT_ANNOTATIONS,
  EMPTY_SCOPE,
  KEEPS_ALL,
  type Label,
  type MemoryId,
  type OrderingPolicy,
  type ResidencyModel,
  renderBlock,
  ScopeState,
  type TokenCounter,
  takeReport,
} from "../core/index.js";
import { chatTokenizer, type Encode } from "../simulator/chat-tokens.js";
import type { PrefixCache } from "../simulator/prefix-cache.js";
import type { RecordedTrace } from "./recorded-trace.js";
import { ServedPrefixes } from "./served-prefixes.js";

const INSTRUCTION = "You are a helpful assistant. Answer the question from what you remember about the user.";
const NO_ANSWER = "I don't know.";
/** Milliseconds between two questions: time to read an answer and ask on. */
const PAUSE_MS = 30_000;

export interface ReplayOptions {
  readonly k: number;
  readonly policy: OrderingPolicy;
  /** Memory budget as a multiple of the tokens of what each question retrieved; null: none. */
  readonly budgetRatio: number | null;
  readonly layout: "single" | "conversation";
  /** First so many questions only. */
  readonly limit?: number | undefined;
  /** What the composer takes the cache to let go of by itself. Default: nothing. */
  readonly residency?: ResidencyModel;
  /** Whether the composer is told what the cache held of each prompt. Default: no. */
  readonly reports?: boolean;
}

/** One composed and simulated prompt. Blocks are memory indexes of the trace. */
export interface ReplayedRequest {
  /** The blocks as they stand in the prompt, carried ones and those of earlier turns included. */
  readonly order: readonly number[];
  readonly carried: readonly number[];
  readonly promptTokens: number;
  /** Tokens that the plan expected the cache to hold. */
  readonly expectedCachedTokens: number;
  /** Tokens that the simulated cache held. */
  readonly cachedTokens: number;
  readonly uncachedTokens: number;
}

/** Sums over all requests. Memory tokens are those of the blocks' lines. */
export interface ReplayTotals {
  readonly requests: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly uncachedTokens: number;
  /** Memory tokens retrieved. */
  readonly retrievedTokens: number;
  /** Memory tokens in the prompts. */
  readonly memoryTokens: number;
  /** Memory tokens outside the longest run of blocks that stood at the beginning of an earlier prompt: an endless, block-exact cache. */
  readonly prefilledMemoryTokens: number;
  /** Evidence ids of the questions, and how many of them are of a block in the prompt. */
  readonly evidence: number;
  readonly evidenceInPrompt: number;
}

export interface Replay {
  readonly requests: readonly ReplayedRequest[];
  readonly totals: ReplayTotals;
}

/** Drives the composer over a trace, each prompt through a simulated cache. Pure but for the cache that it fills. */
export function replayTrace(
  trace: RecordedTrace,
  cache: PrefixCache,
  { encode, countTokens }: { readonly encode: Encode; readonly countTokens: TokenCounter },
  options: ReplayOptions,
): Replay {
  const state = new ScopeState(EMPTY_SCOPE, countTokens);
  const tokenize = chatTokenizer(encode);
  const turns = new Conversation([]);
  const history: ChatMessage[] = [];
  const served = new ServedPrefixes();
  const weights = trace.memories.map(({ memory }, at) =>
    countTokens(renderBlock({ label: (at + 1) as Label, replaces: [] }, memory)),
  );
  const sum = (blocks: readonly number[]) => blocks.reduce((tokens, at) => tokens + (weights[at] ?? 0), 0);
  const requests: ReplayedRequest[] = [];
  const standing: number[] = [];
  const totals = {
    requests: 0,
    promptTokens: 0,
    cachedTokens: 0,
    uncachedTokens: 0,
    retrievedTokens: 0,
    memoryTokens: 0,
    prefilledMemoryTokens: 0,
    evidence: 0,
    evidenceInPrompt: 0,
  };
  for (const { question, answer, retrieved, evidence } of trace.questions.slice(0, options.limit)) {
    const now = totals.requests * PAUSE_MS;
    const asked = retrieved.slice(0, options.k);
    const retrievedTokens = sum(asked);
    const spoken: ChatMessage = { role: "user", content: question };
    const isConversation = options.layout === "conversation";
    const composition = compose(state, {
      conversation: isConversation ? { id: "replay" as ConversationId, turns } : null,
      messages: [{ role: "system", content: INSTRUCTION }, ...(isConversation ? history : []), spoken],
      memories: asked.map((at) => ({ id: String(at) as MemoryId, text: trace.memories[at]?.memory ?? "" })),
      policy: options.policy,
      residency: options.residency ?? KEEPS_ALL,
      now,
      memoryBudgetTokens: options.budgetRatio === null ? null : Math.floor(options.budgetRatio * retrievedTokens),
      annotations: DEFAULT_ANNOTATIONS,
      countTokens,
      isOurs: () => false,
    });
    history.push(spoken, { role: "assistant", content: typeof answer === "string" ? answer : NO_ANSWER });
    const placed = composition.memories.filter(({ placement }) => placement !== "earlier_turn");
    const inThisTurn = [...new Set(placed.map(({ memoryId }) => Number(memoryId)))];
    const carried = placed
      .filter(({ placement }) => placement === "carried_over")
      .map(({ memoryId }) => Number(memoryId));
    const order = [...standing, ...inThisTurn];
    if (isConversation) standing.push(...inThisTurn);

    const tokens = tokenize(composition.messages);
    const { cachedTokens } = cache.serve({ tokens }, now);
    const uncachedTokens = tokens.length - cachedTokens;
    const { plan, leaf, turn } = composition;
    const { expectedCachedTokens } = plan;
    requests.push({ order, carried, promptTokens: tokens.length, expectedCachedTokens, cachedTokens, uncachedTokens });
    if (options.reports) {
      const report = { cachedTokens, promptTokens: tokens.length };
      takeReport(state.index, { leaf, turn: turn.id, at: now, plan }, report, now);
    }
    const there = new Set(order.flatMap((at) => trace.memories[at]?.evidence ?? []));
    totals.requests++;
    totals.promptTokens += tokens.length;
    totals.cachedTokens += cachedTokens;
    totals.uncachedTokens += uncachedTokens;
    totals.retrievedTokens += retrievedTokens;
    totals.memoryTokens += sum(order);
    totals.prefilledMemoryTokens += sum(order.slice(served.take(order)));
    totals.evidence += evidence.length;
    totals.evidenceInPrompt += evidence.filter((id) => there.has(id)).length;
  }
  return { requests, totals };
}
