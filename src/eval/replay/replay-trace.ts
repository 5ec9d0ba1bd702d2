/*
 * Recorded searches, composed again without a memory source or an engine, every prompt costed on a simulated prefix cache.
 *
 * Enters: a trace (memories, questions, what a search returned for each), an ordering policy, a layout and a cache.
 * Leaves: every prompt with its tokens, its cached tokens and its memories, and their sums; a batch also its execution order.
 * Pure but for the cache: the same trace and options give the same figures.
 */

import type { PrefixCache } from "../../simulator/prefix-cache.js";
import { composeTrace, type ReplayedPrompt, type ReplayOptions, type TextTokens } from "./compose-trace.js";
import type { RecordedTrace } from "./recorded-trace.js";

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
  /** Whether the composer is told what the cache held of each prompt. Default: no. */
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
    const { cachedTokens } = cache.serve(prompt, 0);
    if (prompt.answered !== null) cache.serve({ tokens: prompt.answered }, 0);
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
