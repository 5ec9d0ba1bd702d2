import { assembleInside } from "./cli/assemble.js";
import { type Settings, variableOf } from "./cli/setting-list.js";
import { readSettings } from "./cli/settings.js";
import type { OwnMem0 } from "./memory/own-mem0.js";
import type {
  ComposedPrompt,
  Eviction,
  Feedback,
  Forgetting,
  MessageLike,
  QueryMessage,
} from "./service/base/call-types.js";
import { ClosedError, InvalidRequestError, NotFoundError } from "./service/base/errors.js";
import { readComposeOptions } from "./service/compose/compose-request.js";
import type {
  AddOptions,
  ComposeOptions,
  EvictOptions,
  FeedbackOptions,
  ForgetMemoryOptions,
  ForgetUserOptions,
  MemoriesOptions,
} from "./service/fields/call-options.js";
import {
  addOptions,
  evictOptions,
  feedbackOptions,
  forgetMemoryOptions,
  forgetUserOptions,
  mem0Items,
  memoriesOptions,
} from "./service/fields/companion-options.js";
import { readOptions } from "./service/fields/fields.js";
import { observationOf } from "./service/learning/engine-reports.js";

export type { ChatMessage } from "./core/index.js";
export type { OwnMem0 } from "./memory/own-mem0.js";
export type {
  ComposeAnswer,
  ComposedPrompt,
  EngineHints,
  Eviction,
  Feedback,
  Forgetting,
  MessageLike,
  QueryMessage,
} from "./service/base/call-types.js";
export {
  ClosedError,
  type FieldIssue,
  InvalidRequestError,
  MemorySourceError,
  NotFoundError,
  StoreUnavailableError,
} from "./service/base/errors.js";
export type { ComposeOptions } from "./service/fields/call-options.js";
export { DatabaseOpenError } from "./store/open-error.js";

/** Defaults are the service's; see `memprefix serve --help`. */
export interface MemprefixOptions {
  /** Directory of memprefix's files. Default: `memprefix-data`. */
  readonly dataDir?: string;
  /**
   * Where to search when a request has no memories: a Mem0 that memprefix opens, or your own: a Mem0 `Memory` or `MemoryClient`, or any object
   * with such a `search`. Default: `embedded` where its packages are installed, else `none`.
   */
  readonly source?:
    | OwnMem0
    | { readonly kind: "embedded" }
    | { readonly kind: "hosted"; readonly apiKey: string; readonly url?: string }
    | { readonly kind: "rest"; readonly url: string; readonly apiKey?: string }
    | { readonly kind: "none" };
  readonly searchTimeoutMs?: number;
  /** TTL of the engine's prefix cache, from a prompt's last use. Default: no limit. */
  readonly cacheTtlSeconds?: number;
  /** Tokens of one user that the engine's prefix cache holds, LRU. Default: no limit. */
  readonly cacheTokens?: number;
  readonly topK?: number;
  /** Most tokens of a prompt, by the engine's count as far as feedback shows it. Default: no limit. */
  readonly maxPromptTokens?: number;
}

/** memprefix in-process: the service without HTTP. After `close`, every other call rejects with {@link ClosedError}. */
export interface MemprefixClient {
  /**
   * Composes a prompt. Messages keep the type they came in. Rejects with {@link InvalidRequestError}; a failing memory source only adds a
   * warning.
   *
   * @example
   * ```ts
   * const { messages } = await memprefix.compose({ userId: "ana", conversationId: "trip", messages: history });
   * await openai.chat.completions.create({ model, messages });
   * ```
   */
  compose<const M extends MessageLike = QueryMessage>(options: ComposeOptions<M>): Promise<ComposedPrompt<M>>;
  /**
   * Adds texts to the memory source unmodified, or an exchange: empty while it waits for others of its conversation. `close` adds what waits.
   * Rejects with `MemorySourceError`.
   */
  add(options: AddOptions): Promise<{ id: string; memory: string }[]>;
  /** The most relevant to a query, else all. */
  memories(options: MemoriesOptions): Promise<{ id: string; memory: string }[]>;
  /** Reports that the engine dropped these requests' cache. */
  evict(options: EvictOptions): Promise<Eviction>;
  /** Reports the engine's usage. A request's first `cachedTokens` corrects the context index. Rejects with `NotFoundError`. */
  feedback(options: FeedbackOptions): Promise<Feedback>;
  forgetMemory(options: ForgetMemoryOptions): Promise<Forgetting>;
  forgetUser(options: ForgetUserOptions): Promise<void>;
  /** Finishes accepted calls, then closes the files. */
  close(): Promise<void>;
}

/**
 * Opens memprefix in-process. Reads no environment variables. Throws {@link InvalidRequestError} for invalid options and `DatabaseOpenError`
 * where the data directory cannot be used.
 */
export function createMemprefix(options: MemprefixOptions = {}): MemprefixClient {
  const { source } = options;
  const settings = settingsOf(options);
  const memprefix = assembleInside(settings, isOwn(source) ? source : null);
  const finishing = new AbortController();
  // A failed deletion is retried before the source is next searched for that user.
  void memprefix.finishDeletions(() => {}, finishing.signal).catch(() => {});
  memprefix.startWriting(() => {});
  let closing: Promise<void> | undefined;
  const whileOpen =
    <A, R>(call: (given: A) => Promise<R>) =>
    async (given: A): Promise<R> => {
      if (closing !== undefined) throw new ClosedError();
      return call(given);
    };
  return {
    compose: whileOpen(async <M extends MessageLike>(request: ComposeOptions<M>) => {
      const answer = await memprefix.compose(readComposeOptions(request));
      // Given messages come back with text added; memprefix's own messages are system or user messages of the same form.
      return { ...answer, messages: [...answer.messages] as MessageLike[] as M[] };
    }),
    memories: whileOpen(async (given) => mem0Items(await memprefix.memories(readOptions(memoriesOptions, given)))),
    add: whileOpen(async (given) => {
      return [...(await memprefix.addGiven(readOptions(addOptions, given))).results];
    }),
    evict: whileOpen(async (given) => memprefix.evict(readOptions(evictOptions, given).requestIds)),
    feedback: whileOpen(async (given) => {
      const { userId, agentId = null, requestId, model, ...reported } = readOptions(feedbackOptions, given);
      return memprefix.feedback(userId, agentId, requestId, observationOf(reported), model).catch((error: unknown) => {
        throw error instanceof NotFoundError ? new NotFoundError("requestId", error.message) : error;
      });
    }),
    forgetMemory: whileOpen(async (given) => {
      const { userId, memoryId } = readOptions(forgetMemoryOptions, given);
      return memprefix.forgetMemory(userId, memoryId);
    }),
    forgetUser: whileOpen(async (given) => {
      await memprefix.forgetUser(readOptions(forgetUserOptions, given).userId);
    }),
    close: () => {
      finishing.abort();
      closing ??= memprefix.close();
      return closing;
    },
  };
}

const OF_THE_SAME_NAME = [
  ...(["dataDir", "searchTimeoutMs", "cacheTtlSeconds", "topK", "maxPromptTokens"] as const),
] satisfies readonly (keyof Settings & keyof MemprefixOptions)[];

/** Each option's setting. A misspelt option would leave a default in force, such as another directory. */
const OPTIONS: ReadonlyMap<string, keyof Settings> = new Map<string, keyof Settings>([
  ...OF_THE_SAME_NAME.map((name) => [name, name] as const),
  ["cacheTokens", "cacheSize"],
  ["source.kind", "source"],
  ["source.url", "mem0Url"],
  ["source.apiKey", "mem0ApiKey"],
]);

type Source = NonNullable<MemprefixOptions["source"]>;

function isOwn(source: Source | undefined): source is OwnMem0 {
  return typeof source === "object" && source !== null && "search" in source && typeof source.search === "function";
}

function refuseUnknown(given: MemprefixOptions): void {
  const source: unknown = given.source;
  if (source !== undefined && (typeof source !== "object" || source === null)) {
    const message = 'must be an object that names its kind, such as { kind: "none" }, or that has a search method';
    throw new InvalidRequestError([{ field: "source", message }]);
  }
  const named = isOwn(given.source) ? [] : Object.keys(given.source ?? {});
  const names = [...Object.keys(given), ...named.map((name) => `source.${name}`)];
  const unknown = names.filter((name) => name !== "source" && !OPTIONS.has(name));
  if (unknown.length === 0) return;
  throw new InvalidRequestError(unknown.map((field) => ({ field, message: "is not a known option" })));
}

/** The options as settings; errors name the option. */
function settingsOf(given: MemprefixOptions): Settings {
  refuseUnknown(given);
  // The caller's own source takes the place of a configured one.
  const source: object = isOwn(given.source) ? { kind: "none" } : (given.source ?? {});
  const values = new Map<string, unknown>(Object.entries(given));
  for (const [name, value] of Object.entries(source)) values.set(`source.${name}`, value);
  const environment: Record<string, string> = {};
  const named = new Map<string, string>();
  for (const [option, setting] of OPTIONS) {
    const value = values.get(option);
    named.set(variableOf(setting), option);
    if (value !== undefined) environment[variableOf(setting)] = String(value);
  }
  try {
    return readSettings(environment);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new InvalidRequestError(
      error.issues.map(({ field, message }) => ({ field: named.get(field) ?? field, message })),
    );
  }
}
