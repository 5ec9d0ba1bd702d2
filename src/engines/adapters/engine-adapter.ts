/*
 * adapters/: one adapter per engine family; `engines.ts` lists them. Pure: nothing is sent here.
 * Enters: a composed prompt with its cache keys and reusable ends; an engine's answer.
 * Leaves: messages with breakpoints, body fields and headers; token counts, null where unreported.
 */

import { v7 as uuidV7 } from "uuid";
import type { EngineUsage } from "../../apis/api/usage.js";
import type { ChatMessage, RequestId } from "../../core/index.js";
import { type JsonObject, listIn, record } from "../../core/text/json.js";

/** `generic` is any engine with OpenAI's chat API. */
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

/** Breakpoints (marks) that the caller set outside the messages. The provider moves the automatic one to the end of the prompt. */
export interface MarksElsewhere {
  readonly tools: readonly unknown[];
  readonly automatic: unknown;
}

export const NO_MARKS: MarksElsewhere = { tools: [], automatic: null };

export function marksElsewhereIn(body: JsonObject): MarksElsewhere {
  const tools = listIn(body["tools"])
    .map(markOfTool)
    .filter((mark) => mark !== undefined);
  return { tools, automatic: body["cache_control"] ?? null };
}

function markOfTool(tool: unknown): unknown {
  return record(tool)["cache_control"] ?? record(record(tool)["function"])["cache_control"] ?? undefined;
}

export interface AdapterPrompt {
  readonly requestId: RequestId;
  /** Opaque and stable, one per tenant: keeps caches apart (vLLM's `cache_salt`). */
  readonly tenantKey: string;
  /** Opaque and stable, one per scope: routes a user's prompts to one replica. Null: no user is named. */
  readonly scopeKey: string | null;
  readonly messages: readonly ChatMessage[];
  /** Indexes of messages at whose ends later prompts' shared prefixes should end, most useful first. */
  readonly reusableMessages: readonly number[];
  /** Index of the message whose injected memories later prompts should repeat. */
  readonly reusableMemories?: number | undefined;
  /** Index of the last message shared with an earlier prompt. */
  readonly cachedMessage?: number | undefined;
  /** Whether a later prompt should read more than its instructions from a cache. Default: yes. */
  readonly isRead?: boolean | undefined;
  readonly marksElsewhere?: MarksElsewhere | undefined;
  /** What the caller sends now; breakpoints of other messages belong to earlier prompts and are removed. Default: all. */
  readonly said?: readonly ChatMessage[] | undefined;
}

export interface EngineEmission {
  readonly messages: readonly ChatMessage[];
  readonly fields: JsonObject;
  readonly headers: Readonly<Record<string, string>>;
}

/** One engine family. Every adapter passes `test/engines/adapters/engine-adapter.suite.ts`. */
export interface EngineAdapter {
  readonly name: EngineName;
  /** Why it gives no log probabilities. Absent: it may give them. */
  readonly noLogprobs?: string;
  /** Whether memories go into tool results. Absent: the engine accepts a user message after them, or rejects it with an error. */
  readonly inResult?: true;
  /** The field that keeps tenants apart in its cache, in any request with a prompt. Absent: it takes none. */
  readonly salt?: string;
  emit(prompt: AdapterPrompt): EngineEmission;
  /** Reads an answer, or the last chunk of a streamed one. Unknown fields are null. */
  readUsage(answer: unknown): EngineUsage;
}

export function requestIdHeader(requestId: RequestId): Readonly<Record<string, string>> {
  return { "x-request-id": requestId };
}

/* ContextPilot's eviction hooks track ids that begin with `req-` and have no further dash. vLLM 0.32 calls a chat `chatcmpl-req-…-1a2b3c4d`. */

const NAMED_BY_ENGINE = /^(?:chatcmpl-|cmpl-|batch-)?(req-[0-9a-f]{32})(?:-[0-9a-f]+)*$/;

/** UUID version 7 (RFC 9562 §5.7) is ordered by time, so rows are appended to cached index pages. */
export function newRequestId(): RequestId {
  return `req-${uuidV7().replaceAll("-", "")}` as RequestId;
}

/** Removes what an engine added to a request id; other ids are unmodified. */
export function sentRequestId(id: RequestId): RequestId {
  return (NAMED_BY_ENGINE.exec(id)?.[1] ?? id) as RequestId;
}
