/*
 * requests: what a request carries through the app, and how its path is read.
 * Enters: Node's request and response, where Node serves the app. Leaves: the typed Hono environment, the log's entry, and paths that
 * several folders name. Knows no guard and no route.
 */

import type { IncomingMessage } from "node:http";
import type { ComposeAnswer } from "../../service/base/call-types.js";
import type { NotComposedReason } from "../../service/chat/compose-with-timeout.js";
import type { Memstem } from "../../service/library/memstem.js";

/** A composed prompt as the log sees it. */
export interface ComposedEntry {
  readonly requestId?: string;
  readonly totalTokens?: number;
  readonly expectedCachedTokens?: number;
  readonly warnings?: readonly string[];
  /** Why a chat went to its engine unmodified; absent where it was composed. */
  readonly notComposed?: NotComposedReason;
}

/** What the log says of a composed prompt. */
export function entryOf({ requestId, plan, warnings }: ComposeAnswer): ComposedEntry {
  const { totalTokens, expectedCachedTokens } = plan;
  return { requestId, totalTokens, expectedCachedTokens, warnings: warnings.map(({ code }) => code) };
}

/** One request's slot among those in flight. */
export interface PendingSlot {
  /** Counts the slot against this holder too, until it is released. False, and not counted: the holder's share is used up. */
  share(holder: string): boolean;
}

/** Hono's environment: what a request carries from one handler to the next. */
export interface HttpEnvironment {
  Bindings: {
    /** Node's request and response, where the app is served by Node. */
    readonly incoming?: IncomingMessage;
    readonly outgoing?: {
      readonly closed: boolean;
      once(event: "close", listener: () => void): unknown;
      setHeader(name: string, value: string): unknown;
    };
  };
  Variables: {
    /** The caller's tenant: the only way from a route to any state. */
    memstem: Memstem;
    /** Id of the caller's API key; null where keys are not in use. */
    keyId: string | null;
    /** The key itself where it is the configured one, which has a form of its own; absent for others. */
    configuredKey?: string;
    /** Its slot among the requests in flight; absent for paths that are always answered. */
    slot?: PendingSlot;
    composed?: ComposedEntry;
  };
}

/** One request as the log sees it. Never memory text, never a query. */
export interface RequestLog extends ComposedEntry {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  /** Milliseconds from its arrival to its answer's head. */
  readonly ms: number;
}

/** Composes a prompt. */
export const COMPOSE_PATH = "/compose";

/** Metrics label of requests without a route: rejected before routing, or no route found. */
export const UNROUTED = "/*";

/** Composes a batch. */
export const BATCH_PATH = "/compose/batch";

/** Takes Mem0's events. */
export const WEBHOOK_PATH = "/webhooks/mem0";

/** The dashboard's page and its parts: the same bytes for everybody, without data. */
const PAGE_PATHS = ["/dashboard", "/dashboard/page.js", "/dashboard/page.css", "/dashboard/icon.svg"];

/** Open without a key, and under no key's limits: health, the OpenAPI document, and the dashboard's page. */
export const OPEN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/livez", "/openapi.json", ...PAGE_PATHS]);

/** Answered even when the service is overloaded or stopping: what an operator reads then. */
export const ALWAYS_ANSWERED: ReadonlySet<string> = new Set(["/healthz", "/livez", "/metrics"]);

/** Prefix of the OpenAI-compatible paths. */
export const OPENAI_PATHS = "/v1/";

/** Whether a path is OpenAI-compatible. */
export function isOpenAiPath(path: string): boolean {
  return path.startsWith(OPENAI_PATHS);
}

/** Anthropic's path of messages; its others are below. */
const ANTHROPIC_PATH = "/v1/messages";

/** Whether a path is Anthropic-compatible. */
export function isAnthropicPath(path: string): boolean {
  return path === ANTHROPIC_PATH || path.startsWith(`${ANTHROPIC_PATH}/`);
}

/** Splits a request target (RFC 9112 §3.2) into path and query. The query starts with `?`, or is empty. */
export function cutTarget(target: string): { readonly path: string; readonly query: string } {
  const at = target.indexOf("?");
  return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at) };
}
