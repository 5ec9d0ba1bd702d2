import {
  type ChatMessage,
  cachedOf,
  type Miss,
  ownTurn,
  type RequestId,
  reportedMiss,
  type StoredPrompt,
  type TokenCounter,
  type ToolChanges,
} from "../../core/index.js";
import type { Store } from "../../store/store.js";
import { NotFoundError } from "../base/errors.js";
import { storedMessages } from "../compose/compose-answer.js";
import type { WorkingScope } from "../scopes/working-scopes.js";

export interface ShownFigures {
  readonly requestId: RequestId;
  readonly at: number;
  readonly totalTokens: number;
  readonly expectedCachedTokens: number;
  /** By memprefix's count of the prompt; null: the engine did not report. */
  readonly reportedCachedTokens: number | null;
  readonly isEvicted: boolean;
}

export interface Explanation extends ShownFigures {
  /** By the engine's report, if any. */
  readonly miss: Miss | null;
  /** Null: none. */
  readonly continued: ShownFigures | null;
  /** The same as sentences. */
  readonly words: readonly string[];
}

export interface ShownMessage {
  readonly role: string;
  readonly tokens: number;
  /** Whether both prompts are the same up to this message. */
  readonly isShared: boolean;
  /** Null: texts were not requested. */
  readonly text: string | null;
}

export interface ShownPrompt {
  readonly explanation: Explanation;
  readonly messages: readonly ShownMessage[];
  /** Null: it continued none. */
  readonly continuedMessages: readonly ShownMessage[] | null;
}

/** Explains a request from stored data; changes nothing. Rejects with {@link NotFoundError}. */
export async function explainIn({ scopeId }: WorkingScope, store: Store, requestId: RequestId): Promise<Explanation> {
  const { prompt, continued } = await continuedPrompt(store, scopeId, requestId);
  const { warnings = [] } = (await store.findRequest(scopeId, requestId))?.answer ?? {};
  const failed = warnings.filter(({ code }) => code === "memory_source_failed").map(({ message }) => message);
  return explanationOf(prompt, continued, failed);
}

/** Shows a request's prompt from stored data; changes nothing. Rejects with `NotFoundError`. */
export async function showIn(
  { scopeId, state: { register } }: WorkingScope,
  store: Store,
  requestId: RequestId,
  { countTokens, hasText }: { readonly countTokens: TokenCounter; readonly hasText: boolean },
): Promise<ShownPrompt> {
  const { prompt, continued } = await continuedPrompt(store, scopeId, requestId);
  const here = storedMessages(prompt, register.textOf);
  const there = continued && storedMessages(continued, register.textOf);
  const texts = (messages: readonly ChatMessage[]) => messages.map((message) => JSON.stringify(message));
  const [own, other] = [texts(here), texts(there ?? [])];
  const differs = own.findIndex((text, at) => text !== other[at]);
  const shared = differs < 0 ? own.length : differs;
  const shown = (messages: readonly ChatMessage[]) =>
    messages.map((message, at): ShownMessage => {
      const { role, content } = message;
      const text = typeof content === "string" ? content : JSON.stringify(content ?? message);
      return { role, tokens: countTokens(text), isShared: at < shared, text: hasText ? text : null };
    });
  const explanation = explanationOf(prompt, continued, []);
  return { explanation, messages: shown(here), continuedMessages: there && shown(there) };
}

async function continuedPrompt(store: Store, scopeId: number, requestId: RequestId) {
  const found = await store.findContinued(scopeId, requestId);
  if (found === null) throw new NotFoundError("request_id", "no such request of this user");
  return found;
}

function explanationOf(
  prompt: StoredPrompt,
  continued: StoredPrompt | null,
  searchFailures: readonly string[],
): Explanation {
  const { plan, evicted } = prompt;
  const report = reportOf(prompt);
  const miss = report === null ? plan.miss : reportedMiss(plan, report);
  const own = { ...figuresOf(prompt), isEvicted: evicted };
  const { toolChanges, instructionChange } = plan;
  const changes = [
    ...(toolChanges === undefined ? [] : [toolsInWords(toolChanges)]),
    ...(instructionChange === undefined ? [] : [`Its instructions differ from line ${instructionChange.line} on.`]),
  ];
  const searches = searchFailures.map((why) => `Its memories could not be searched for: ${why}.`);
  const explained = { ...own, miss, continued: continued && figuresOf(continued) };
  return { ...explained, words: [...wordsOf(explained), ...changes, ...searches] };
}

function reportOf({ report, besideTokens }: StoredPrompt) {
  return report && { ...report, besideTokens };
}

function figuresOf(prompt: StoredPrompt): ShownFigures {
  const { requestId, at, plan, evicted } = prompt;
  const totalTokens = ownTurn(prompt).promptTokens;
  const report = reportOf(prompt);
  return {
    requestId,
    at,
    totalTokens,
    expectedCachedTokens: plan.expectedCachedTokens,
    reportedCachedTokens: report && Math.min(totalTokens, cachedOf(report, totalTokens)),
    isEvicted: evicted,
  };
}

function wordsOf(of: Omit<Explanation, "words">): string[] {
  const { requestId, totalTokens, expectedCachedTokens, reportedCachedTokens: reported, miss, continued } = of;
  const age = continued && Math.round((of.at - continued.at) / 1_000);
  return [
    `Request ${requestId} has ${totalTokens} tokens. memprefix expected ${expectedCachedTokens} of them to be cached.`,
    reported === null
      ? "The engine's cached tokens were not reported. Post its usage to /feedback."
      : `The engine reported ${reported} cached tokens.`,
    continued === null
      ? "It continues no earlier prompt."
      : `It continues request ${continued.requestId}, composed ${age} s before, of ${continued.totalTokens} tokens.`,
    miss === null
      ? "Nothing was missed: only the new turn's own text is computed."
      : `Missed: ${miss.tokens} tokens, cause: ${miss.cause.replaceAll("_", " ")}.`,
  ];
}

function toolsInWords(changes: ToolChanges): string {
  const named = (["added", "removed", "changed"] as const).filter((kind) => changes[kind].length > 0);
  if (named.length === 0) return "Its tools are the same, in another order or form.";
  return `Its tools differ: ${named.map((kind) => `${kind}: ${changes[kind].join(", ")}`).join("; ")}.`;
}
