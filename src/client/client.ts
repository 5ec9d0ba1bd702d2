import type {
  ComposedPrompt,
  Eviction,
  Feedback,
  Forgetting,
  MessageLike,
  QueryMessage,
} from "../service/base/call-types.js";
import type * as options from "../service/fields/call-options.js";
import type * as batch from "./batch-types.js";
import { ClosedError, InvalidRequestError } from "./errors.js";
import {
  asAnswer,
  asBatch,
  asText,
  batchLinesOf,
  joined,
  jsonIn,
  type Reader,
  requestLines,
  textsOf,
} from "./reading.js";
import { ROUTES, type Route } from "./routes.js";
import { type CallControl, type ClientOptions, connectionOf, type Outgoing, send } from "./sending.js";
import { queryOf, toWire } from "./wire-names.js";
import type * as wire from "./wire-types.js";

/**
 * A memprefix service, with the methods, options and answers of the library's `MemprefixClient`, and with everything else that the service's HTTP
 * API has of its own. `/v1/…` is for clients of OpenAI's and Anthropic's APIs.
 *
 * Every method rejects with `MemprefixHttpError` or one of its kinds where the service answers with other than success, with
 * `MemprefixConnectionError` where it does not answer, and with the signal's reason where the caller's signal aborts.
 */
export interface RemoteMemprefix {
  /**
   * Composes a prompt. The messages come back in the type they were given in, as far as JSON holds it. Tried again under one request id, so
   * that the service answers what it stored.
   */
  compose<const M extends MessageLike = QueryMessage>(
    options: options.ComposeOptions<M>,
    call?: CallControl,
  ): Promise<ComposedPrompt<M>>;
  /** Composes many prompts, planned together. */
  composeBatch<const M extends MessageLike = QueryMessage>(
    options: batch.WholeBatchOptions<M>,
    call?: CallControl,
  ): Promise<batch.BatchAnswers<M>>;
  /**
   * The same as a stream in both directions: answers come while requests are read. A list is sent as one text, and again where that fails;
   * other requests need a runtime that streams the bodies of requests (Node, Deno, Bun; not every browser). `break` stops the batch.
   */
  composeLines<const M extends MessageLike = QueryMessage>(
    requests: Iterable<batch.BatchComposeOptions<M>> | AsyncIterable<batch.BatchComposeOptions<M>>,
    options?: batch.BatchLineOptions,
    call?: CallControl,
  ): AsyncIterableIterator<batch.BatchLine<M>>;
  /** Adds texts to the memory source, as they are. Not tried again, unless it was rejected before any work: that would add twice. */
  add(options: options.AddOptions, call?: CallControl): Promise<{ id: string; memory: string }[]>;
  /** The engine dropped these requests' cache. Tried again, it may call unknown what the try before evicted. */
  evict(options: options.EvictOptions, call?: CallControl): Promise<Eviction>;
  /** What the engine reported of a request, in tokens and milliseconds. Rejects with `NotFoundError`. */
  feedback(options: options.FeedbackOptions, call?: CallControl): Promise<Feedback>;
  /** Why a prompt hit the prefix cache as far as it did. Rejects with `NotFoundError`. */
  explain(options: wire.ExplainRequestOptions, call?: CallControl): Promise<wire.ExplainedPrompt>;
  /** A user's context index. */
  describeIndex(options: wire.IndexOptions, call?: CallControl): Promise<wire.DescribedIndex>;
  /** Everything stored on a user. Rows have the database's names. */
  exportUser(options: options.ForgetUserOptions, call?: CallControl): Promise<wire.ExportedData>;
  /** What prompts cost over an hour, a day or a month. */
  usageSummary(options?: wire.UsageViewOptions, call?: CallControl): Promise<wire.UsageSummary>;
  /** Misses by cause, with what to do about each. */
  usageMisses(options?: wire.UsageViewOptions, call?: CallControl): Promise<wire.UsageMisses>;
  /** Prompts, newest first, in pages. */
  usageRequests(options?: wire.UsageRequestsOptions, call?: CallControl): Promise<wire.UsageRequests>;
  /** A prompt as bars, beside the one that it should have continued. Rejects with `NotFoundError`. */
  usageRequest(options: wire.ExplainRequestOptions, call?: CallControl): Promise<wire.UsageRequest>;
  /** Notes a deploy or a restart, to be shown in charts. */
  addUsageNote(options: wire.UsageNoteOptions, call?: CallControl): Promise<wire.UsageNote>;
  /** Forgets a memory for good. */
  forgetMemory(options: options.ForgetMemoryOptions, call?: CallControl): Promise<Forgetting>;
  /** Forgets everything kept of a user. */
  forgetUser(options: options.ForgetUserOptions, call?: CallControl): Promise<void>;
  /** Passes on an event of the Mem0 platform, unmodified. Needs the webhook's token in place of an API key. */
  receiveMem0Event(event: unknown, call?: CallControl): Promise<void>;
  /** The service's state; it says `stopping` where it is about to end. */
  health(call?: CallControl): Promise<wire.Health>;
  /** The same, without asking the database: whether the process works. */
  live(call?: CallControl): Promise<wire.Health>;
  /** Counters and gauges, in Prometheus' text format. */
  metrics(call?: CallControl): Promise<string>;
  /** The service's OpenAPI document. */
  openapi(call?: CallControl): Promise<Readonly<Record<string, unknown>>>;
  /** Waits for the calls under way, streams aside. Every later call rejects with {@link ClosedError}. */
  close(): Promise<void>;
}

/**
 * A client of a service. Needs `fetch`, `AbortController` and `crypto.getRandomValues`: Node, Deno, Bun, browsers and workers have them.
 * Throws {@link InvalidRequestError} for options that are wrong.
 *
 * @example
 * ```ts
 * const memprefix = createMemprefixClient({ url: "http://127.0.0.1:4600" });
 * const { messages } = await memprefix.compose({ userId: "ana", messages: [{ role: "user", content: "Where do we eat?" }] });
 * ```
 */
export function createMemprefixClient(given: ClientOptions): RemoteMemprefix {
  const connection = connectionOf(given);
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;

  const whileOpen = async <T>(start: () => Promise<T>): Promise<T> => {
    if (isClosed) throw new ClosedError();
    const answer = start();
    underWay.add(answer);
    return answer.finally(() => underWay.delete(answer));
  };
  const ask = <T>(outgoing: () => Outgoing, call: CallControl | undefined, read: Reader = asAnswer): Promise<T> =>
    whileOpen(async () => {
      const request = outgoing();
      return send(connection, request, call ?? {}, async (response, current) => {
        // A batch's answer comes in parts, and takes as long as its prompts do.
        const text = read === asBatch ? await joined(textsOf(response, current)) : await response.text();
        current.stop();
        return read(text, request, response) as T;
      });
    });
  const posted = <T>(route: Route, body: unknown, call: CallControl | undefined, read?: Reader) =>
    ask<T>(() => ({ route, body: jsonOf(body, route) }), call, read);
  const queried = <T>(route: Route, query: object, call: CallControl | undefined) =>
    ask<T>(() => ({ route, query: queryOf(query) }), call);

  return {
    compose: (given, call) => posted(ROUTES.compose, named(given), call),
    composeBatch: (given, call) => posted(ROUTES.composeBatch, allNamed(given), call, asBatch),
    async *composeLines<const M extends MessageLike>(
      requests: Iterable<batch.BatchComposeOptions<M>> | AsyncIterable<batch.BatchComposeOptions<M>>,
      { window, workers, planner }: batch.BatchLineOptions = {},
      call: CallControl = {},
    ) {
      if (isClosed) throw new ClosedError();
      const route = ROUTES.composeLines;
      const write = (request: unknown) => jsonText(toWire(named(request), route.unmodified));
      const lines = requestLines(requests, write);
      const outgoing = {
        route,
        query: queryOf({ window, workers: workers === undefined ? undefined : commaSeparated(workers), planner }),
        body: { type: "application/x-ndjson", content: lines.content },
      };
      try {
        yield* await send(connection, outgoing, call, async (response, current) => batchLinesOf<M>(response, current));
      } finally {
        lines.stop();
      }
    },
    async add(given, call) {
      const { results } = await posted<{ results: { id: string; memory: string }[] }>(ROUTES.add, given, call);
      return results;
    },
    evict: (given, call) => posted(ROUTES.evict, given, call),
    feedback: (given, call) => posted(ROUTES.feedback, given, call),
    explain: (given, call) => queried(ROUTES.explain, given, call),
    describeIndex: (given, call) => queried(ROUTES.describeIndex, given, call),
    exportUser: (given, call) => queried(ROUTES.exportUser, given, call),
    usageSummary: (given = {}, call) => queried(ROUTES.usageSummary, given, call),
    usageMisses: (given = {}, call) => queried(ROUTES.usageMisses, given, call),
    usageRequests: (given = {}, call) => queried(ROUTES.usageRequests, given, call),
    usageRequest: (given, call) => queried(ROUTES.usageRequest, given, call),
    addUsageNote: (given, call) => posted(ROUTES.addUsageNote, given, call),
    forgetMemory: (given, call) => queried(ROUTES.forgetMemory, given, call),
    async forgetUser(given, call) {
      await queried(ROUTES.forgetUser, given, call);
    },
    async receiveMem0Event(event, call) {
      const route = ROUTES.receiveMem0Event;
      const body = { type: "application/json", content: JSON.stringify(event ?? null) };
      await ask(() => ({ route, body }), call, asText);
    },
    health: (call) => ask(() => ({ route: ROUTES.health, alsoAnswered: 503 }), call),
    live: (call) => ask(() => ({ route: ROUTES.live }), call),
    metrics: (call) => ask(() => ({ route: ROUTES.metrics }), call, asText),
    openapi: (call) => ask(() => ({ route: ROUTES.openapi }), call, jsonIn),
    async close() {
      isClosed = true;
      await Promise.allSettled(underWay);
    },
  };
}

function jsonOf(given: unknown, { unmodified }: Route) {
  return { type: "application/json", content: jsonText(toWire(given, unmodified)) };
}

function jsonText(body: unknown): string {
  try {
    return JSON.stringify(body ?? null);
  } catch {
    return JSON.stringify(withoutUnwritable(body));
  }
}

/** A body without memories that no JSON says, such as those with a bigint or a cycle: as every bad one, each costs itself and a warning. */
function withoutUnwritable(body: unknown): unknown {
  if (typeof body !== "object" || body === null) return body;
  const { requests, memories } = body as { readonly requests?: unknown; readonly memories?: unknown };
  return {
    ...body,
    ...(Array.isArray(requests) ? { requests: requests.map(withoutUnwritable) } : {}),
    ...(memories === undefined ? {} : { memories: writable(memories) }),
  };
}

function writable(memories: unknown): unknown {
  if (Array.isArray(memories)) return memories.map((memory) => (isWritable(memory) ? memory : null));
  const { results } = (memories ?? {}) as { readonly results?: unknown };
  return Array.isArray(results) ? { results: writable(results) } : memories;
}

function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value);
    return true;
  } catch {
    return false;
  }
}

/** Names a request before its first try. */
function named(given: unknown): unknown {
  if (typeof given !== "object" || given === null) return given;
  return { ...given, requestId: ("requestId" in given ? given.requestId : null) ?? newRequestId() };
}

function allNamed(given: batch.WholeBatchOptions): unknown {
  return Array.isArray(given?.requests) ? { ...given, requests: given.requests.map(named) } : given;
}

/** 128 random bits, in the form that engines' eviction hooks track. `randomUUID` exists in secure contexts only, so not on a page of plain http. */
function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `req-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

function commaSeparated(workers: readonly string[]): string {
  if (workers.some((name) => name.includes(","))) {
    throw new InvalidRequestError([{ field: "workers", message: "must have no comma in a name" }]);
  }
  return workers.join(",");
}
