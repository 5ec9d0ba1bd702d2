/*
 * adapters/: one adapter per engine family; `engines.ts` lists them.
 * In: a composed prompt with its cache keys and the ends that later prompts reuse (`AdapterPrompt`); an engine's answer.
 * Out: messages with cache breakpoints, body fields and headers (`EngineEmission`); token counts (`EngineUsage`), null where unreported.
 * Pure: nothing is sent here. `provider-limits.ts` holds what providers document.
 */

import { v7 as uuidV7 } from "uuid";
import type { EngineUsage } from "../../apis/api/usage.js";
import type { ChatMessage, RequestId } from "../../core/index.js";
import { type JsonObject, listIn, record } from "../../core/text/json.js";

/** The engines that a caller can name; `generic` is anything that speaks OpenAI's chat API. */
export const ENGINE_NAMES = [
  "generic",
  "mistral",
  "vllm",
  "sglang",
  "llamacpp",
  "openai",
  "openai-breakpoints",
  "anthropic",
] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];

/** Breakpoints (marks) that a caller set outside the messages, in its provider's form. */
export interface MarksElsewhere {
  /** On tools, which stand in front of all messages. */
  readonly tools: readonly unknown[];
  /** One that the provider itself moves to the end of the prompt; null: none. */
  readonly automatic: unknown;
}

export const NO_MARKS: MarksElsewhere = { tools: [], automatic: null };

/** The breakpoints of Anthropic's form in a body, outside of its messages: on tools, and the automatic one. */
export function marksElsewhereIn(body: JsonObject): MarksElsewhere {
  const tools = listIn(body["tools"])
    .map(markOfTool)
    .filter((mark) => mark !== undefined);
  return { tools, automatic: body["cache_control"] ?? null };
}

/** A breakpoint on a tool, or on its function; undefined for none. */
function markOfTool(tool: unknown): unknown {
  return record(tool)["cache_control"] ?? record(record(tool)["function"])["cache_control"] ?? undefined;
}

/** A composed prompt as an engine's adapter sees it. */
export interface AdapterPrompt {
  readonly requestId: RequestId;
  /** Opaque and stable, one per tenant: keeps caches apart (vLLM's `cache_salt`). */
  readonly tenantKey: string;
  /** Opaque and stable, one per scope: routes a user's prompts to one replica (`prompt_cache_key`). Null: nobody is named. */
  readonly scopeKey: string | null;
  readonly messages: readonly ChatMessage[];
  /** Indexes of messages whose ends are expected to end prefixes of later prompts, most useful first. */
  readonly reusableMessages: readonly number[];
  /** Index of the message whose injected memories later prompts are expected to repeat, whatever follows them there. */
  readonly reusableMemories?: number | undefined;
  /** Index of the last message shared with an earlier prompt: a cached prefix can reach its end. */
  readonly cachedMessage?: number | undefined;
  /** Whether a later prompt is expected to read more of it from a cache than its instructions. Default: yes. */
  readonly isRead?: boolean | undefined;
  /** Breakpoints that the caller set outside the messages; they count against the limit. Default: none. */
  readonly marksElsewhere?: MarksElsewhere | undefined;
  /** What the caller sends now; breakpoints of other messages were set for earlier prompts, and are left out. Default: all. */
  readonly said?: readonly ChatMessage[] | undefined;
}

/** What an adapter adds to a request, beside the model and its settings. */
export interface EngineEmission {
  /** The messages, with cache breakpoints where the engine has them. */
  readonly messages: readonly ChatMessage[];
  /** Fields of the engine's request body. */
  readonly fields: JsonObject;
  readonly headers: Readonly<Record<string, string>>;
}

/** One engine family. Every adapter passes `test/engines/adapters/engine-adapter.suite.ts`. */
export interface EngineAdapter {
  readonly name: EngineName;
  /** Why it gives no log probabilities, in a few words. Absent: it may give them. */
  readonly noLogprobs?: string;
  /** Whether memories go into tool results. Absent: the engine takes a user message after them, or rejects it with an error. */
  readonly inResult?: true;
  emit(prompt: AdapterPrompt): EngineEmission;
  /** Reads the usage of an answer, or of the last chunk of a streamed one. Tolerant: unknown fields are null. */
  readUsage(answer: unknown): EngineUsage;
}

/** The header that engines and gateways take a request's id from, vLLM among them. */
export function requestIdHeader(requestId: RequestId): Readonly<Record<string, string>> {
  return { "x-request-id": requestId };
}

/*
 * Request ids as ContextPilot's eviction hooks track them: `req-` and no further dash (its `_vllm_hook.py`, 0.5.0). An engine puts its own
 * prefix and suffixes around them, of which the hooks take off some: vLLM 0.32 calls a chat `chatcmpl-req-…-1a2b3c4d`.
 */

const NAMED_BY_ENGINE = /^(?:chatcmpl-|cmpl-|batch-)?(req-[0-9a-f]{32})(?:-[0-9a-f]+)*$/;

/** Version 7 of a UUID (RFC 9562 §5.7) is ordered by time: rows are appended to index pages that are in the cache. */
export function newRequestId(): RequestId {
  return `req-${uuidV7().replaceAll("-", "")}` as RequestId;
}

/** The id that a prompt was sent with, of what its engine calls it; others unmodified. */
export function sentRequestId(id: RequestId): RequestId {
  return (NAMED_BY_ENGINE.exec(id)?.[1] ?? id) as RequestId;
}
