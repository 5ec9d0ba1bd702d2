import type { PrefixCache } from "../../core/cache/simulated-cache.js";
import { HISTORY_NAMES, type HistoryName } from "../../core/conversation/epoch.js";
import type { ChatMessage, PolicyName } from "../../core/index.js";
import type { Memprefix } from "../../service/library/memprefix.js";
import { chatTokenizer } from "../base/chat-tokens.js";
import { MemoryList } from "../base/prompt-memories.js";
import { HAND_BUILT } from "../base/run-record.js";
import { memoriesOf, type RecordedTrace, saidTo } from "../replay/recorded-trace.js";
import { type ReplayedRequest, type ReplayTotals, type TextTokens, totalsOf } from "../replay/replay-trace.js";
import { composedPrompts, handBuiltPrompts, type PromptBuilder } from "./arm-prompts.js";
import { newest } from "./arms.js";

/** A trace as one conversation whose client sends only a window of its history. */
export interface WindowReplay {
  readonly k: number;
  readonly policy: PolicyName;
  /** As `memory_budget_ratio`; null: no bound. */
  readonly budgetRatio: number | null;
  /** Messages that the client sends, the question included. */
  readonly window: number;
  /** What memprefix makes of the window; each is an arm. */
  readonly histories: readonly HistoryName[];
  /** Null: memprefix's default. */
  readonly historyRatio: number | null;
  /** Assumed answer to each question. Default: the recorded one. */
  readonly answer?: string | undefined;
  /** First questions only. */
  readonly limit?: number | undefined;
  /** Whether memprefix gets a usage report of each prompt. Default: no. */
  readonly reports?: boolean | undefined;
}

export type WindowArm = (typeof HAND_BUILT)[number] | HistoryName;

export interface WindowRequest extends Omit<ReplayedRequest, "expectedCachedTokens"> {
  /** Null where the prompt is not memprefix's. */
  readonly expectedCachedTokens: number | null;
}

export interface ReplayedWindow {
  readonly arm: WindowArm;
  readonly requests: readonly WindowRequest[];
  readonly totals: Omit<ReplayTotals, "prefilledMemoryTokens" | "largestSentRatio">;
}

export interface WindowParts {
  readonly tokens: TextTokens;
  readonly newCache: () => PrefixCache;
  /** Opens a memprefix without users, on this clock; it is closed here. */
  readonly openMemprefix: (now: () => number) => Memprefix;
}

/** Replays each hand-built prompt and each history, with a cache of its own. */
export async function replayWindows(
  trace: RecordedTrace,
  replay: WindowReplay,
  parts: WindowParts,
): Promise<ReplayedWindow[]> {
  const list = new MemoryList(memoriesOf(trace), parts.tokens.countTokens);
  const arms: ReplayedWindow[] = [];
  const { window, historyRatio, policy, budgetRatio } = replay;
  for (const arm of HAND_BUILT)
    arms.push(await replayArm(trace, replay, parts, { arm, prompts: handBuiltPrompts(list, arm, null) }));
  for (const arm of replay.histories) {
    const prompts = composedPrompts(list, {
      ...{ openMemprefix: parts.openMemprefix, policy, budgetRatio, family: "generic" },
      arm: { layout: "conversation", retention: null, annotations: null, depth: null, window },
      history: { name: arm, ratio: hasRatio(arm) ? historyRatio : null },
      ...{ mark: null, promptTokens: null, chooseDepth: null },
    });
    arms.push(await replayArm(trace, replay, parts, { arm, prompts }));
  }
  return arms;
}

/** The histories compared by default. `stored` is for clients that send only new messages. */
export const WINDOW_HISTORIES: readonly HistoryName[] = HISTORY_NAMES.filter((name) => name !== "stored");

/** Whether `history_ratio` bounds this history. */
export function hasRatio(history: HistoryName): boolean {
  return history !== "exact" && history !== "stored";
}

async function replayArm(
  { questions }: RecordedTrace,
  replay: WindowReplay,
  { tokens, newCache }: WindowParts,
  { arm, prompts }: { readonly arm: WindowArm; readonly prompts: PromptBuilder },
): Promise<ReplayedWindow> {
  const cache = newCache();
  const tokenize = chatTokenizer(tokens.encode);
  const history: ChatMessage[] = [];
  const requests: WindowRequest[] = [];
  const sums = { evidence: 0, evidenceInPrompt: 0 };
  try {
    for (const [turn, asked] of questions.slice(0, replay.limit).entries()) {
      const { question, evidence } = asked;
      const prompt = await prompts.build({
        turn,
        question,
        // A window counts the question. With `stored`, a client sends only what is new.
        history: newest(history, arm === "stored" ? 1 : replay.window - 1),
        retrieved: asked.retrieved.slice(0, replay.k),
        evidence,
      });
      const sent = tokenize(prompt.messages);
      const cachedTokens = cache.serve(sent);
      const answered: ChatMessage = { role: "assistant", content: replay.answer ?? saidTo(asked) };
      // Engines cache an answer like its prompt.
      cache.serve(tokenize([...prompt.messages, answered]));
      if (replay.reports) await prompt.learn({ promptTokens: sent.length, cachedTokens, ttftMs: null });
      history.push({ role: "user", content: question }, answered);
      const { order, carried, figures } = prompt;
      requests.push({
        order,
        carried,
        promptTokens: sent.length,
        expectedCachedTokens: prompt.expected?.cachedTokens ?? null,
        cachedTokens,
        uncachedTokens: sent.length - cachedTokens,
        retrievedTokens: figures.retrievedTokens,
        memoryTokens: figures.memoryTokens,
      });
      sums.evidence += evidence.length;
      sums.evidenceInPrompt += figures.evidenceInPrompt;
    }
  } finally {
    await prompts.close();
  }
  return { arm, requests, totals: { ...totalsOf(requests), ...sums } };
}
