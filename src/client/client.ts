import { fromWire, toWire } from "../http/contracts/wire-names.js";
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
import { ROUTES, type Route } from "./routes.js";
import { type CallControl, type ClientOptions, type Outgoing, senderTo } from "./sending.js";
import type * as wire from "./wire-types.js";

/**
 * A memprefix service: the methods of the library's `MemprefixClient`, and its explanations, exports, usage and health. `/v1/…` is for clients of OpenAI's and
 * Anthropic's APIs. Messages keep their type, as far as JSON holds it. Every method rejects with `MemprefixError`, or with the signal's reason.
 */
export interface RemoteMemprefix {
  compose<const M extends MessageLike = QueryMessage>(
    options: options.ComposeOptions<M>,
    call?: CallControl,
  ): Promise<ComposedPrompt<M>>;
  composeBatch<const M extends MessageLike = QueryMessage>(
    options: batch.WholeBatchOptions<M>,
    call?: CallControl,
  ): Promise<batch.BatchAnswers<M>>;
  add(options: options.AddOptions, call?: CallControl): Promise<{ id: string; memory: string }[]>;
  /** The most relevant to a query, else all. */
  memories(options: options.MemoriesOptions, call?: CallControl): Promise<{ id: string; memory: string }[]>;
  evict(options: options.EvictOptions, call?: CallControl): Promise<Eviction>;
  feedback(options: options.FeedbackOptions, call?: CallControl): Promise<Feedback>;
  explain(options: wire.ExplainRequestOptions, call?: CallControl): Promise<wire.ExplainedPrompt>;
  exportUser(options: options.ForgetUserOptions, call?: CallControl): Promise<wire.ExportedData>;
  usageSummary(options?: wire.UsageViewOptions, call?: CallControl): Promise<wire.UsageSummary>;
  usageRequests(options?: wire.UsageRequestsOptions, call?: CallControl): Promise<wire.UsageRequests>;
  usageRequest(options: wire.ExplainRequestOptions, call?: CallControl): Promise<wire.UsageRequest>;
  forgetMemory(options: options.ForgetMemoryOptions, call?: CallControl): Promise<Forgetting>;
  forgetUser(options: options.ForgetUserOptions, call?: CallControl): Promise<void>;
  health(call?: CallControl): Promise<wire.Health>;
}

/**
 * A client of a service, for Node, Deno, Bun, browsers and workers. Throws a `TypeError` for an invalid address.
 *
 * @example
 * ```ts
 * const memprefix = createMemprefixClient({ url: "http://127.0.0.1:4600" });
 * const { messages } = await memprefix.compose({ userId: "ana", messages: [{ role: "user", content: "Where do we eat?" }] });
 * ```
 */
export function createMemprefixClient(given: ClientOptions): RemoteMemprefix {
  const send = senderTo(given);
  const ask = async <T>(route: Route, outgoing: Outgoing, call: CallControl = {}): Promise<T> =>
    fromWire(await send(route, outgoing, call), route.unmodified) as T;
  const posted = async <T>(route: Route, body: unknown, call?: CallControl) =>
    ask<T>(route, { body: JSON.stringify(toWire(body, route.unmodified)) }, call);
  const queried = <T>(route: Route, query: object, call?: CallControl) =>
    ask<T>(route, { query: toWire(query) as object }, call);

  return {
    compose: (given, call) => posted(ROUTES.compose, given, call),
    composeBatch: (given, call) => posted(ROUTES.composeBatch, given, call),
    async add(given, call) {
      const { results } = await posted<{ results: { id: string; memory: string }[] }>(ROUTES.add, given, call);
      return results;
    },
    async memories(given, call) {
      const { results } = await queried<{ results: { id: string; memory: string }[] }>(ROUTES.memories, given, call);
      return results;
    },
    evict: (given, call) => posted(ROUTES.evict, given, call),
    feedback: (given, call) => posted(ROUTES.feedback, given, call),
    explain: (given, call) => queried(ROUTES.explain, given, call),
    exportUser: (given, call) => queried(ROUTES.exportUser, given, call),
    usageSummary: (given = {}, call) => queried(ROUTES.usageSummary, given, call),
    usageRequests: (given = {}, call) => queried(ROUTES.usageRequests, given, call),
    usageRequest: (given, call) => queried(ROUTES.usageRequest, given, call),
    forgetMemory: (given, call) => queried(ROUTES.forgetMemory, given, call),
    async forgetUser(given, call) {
      await queried(ROUTES.forgetUser, given, call);
    },
    health: (call) => ask(ROUTES.health, { alsoAnswered: 503 }, call),
  };
}
