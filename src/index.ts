import { assemble } from "./cli/assemble.js";
import { readSettings } from "./cli/settings.js";
import type { ChatMessage, MemoryId } from "./core/index.js";
import type { Eviction, Feedback, Forgetting } from "./service/answers.js";
import type { ComposeAnswer } from "./service/compose-answer.js";
import { type ComposeOptions, type MessageLike, readComposeOptions } from "./service/compose-request.js";
import { InvalidRequestError } from "./service/errors.js";
import { fieldIssues } from "./service/field-issues.js";
import * as field from "./service/fields.js";

export type { ChatMessage } from "./core/index.js";
export type { Eviction, Feedback, Forgetting } from "./service/answers.js";
export type { ComposeAnswer, EngineHints } from "./service/compose-answer.js";
export type { ComposeOptions, MessageLike } from "./service/compose-request.js";
export { type FieldIssue, InvalidRequestError, MemorySourceError, NotFoundError } from "./service/errors.js";
export { DatabaseOpenError } from "./store/open-database.js";

/** How to set memstem up in-process. Everything has the service's default; see `memstem serve --help`. */
export interface MemstemOptions {
  /** Directory of all files that memstem keeps. Default `memstem-data`. */
  readonly dataDir?: string;
  /** Where to search when a request brings no memories. Default: `embedded`. */
  readonly source?:
    | { readonly kind: "embedded" }
    | { readonly kind: "hosted"; readonly apiKey: string; readonly url?: string }
    | { readonly kind: "rest"; readonly url: string; readonly apiKey?: string }
    | { readonly kind: "none" };
  /** Milliseconds. Default 2,000. */
  readonly searchTimeoutMs?: number;
}

/** An answer whose messages have the caller's own message type. */
export type ComposedPrompt<M extends MessageLike = ChatMessage> = Omit<ComposeAnswer, "messages"> & {
  readonly messages: M[];
};

/** memstem in-process: the same behaviour as the service, without HTTP. */
export interface MemstemClient {
  /**
   * Composes a prompt. The messages come back in the type they were given in, to be passed on to the engine's client. Rejects with
   * {@link InvalidRequestError} for a bad request; a failing memory source only makes a warning.
   */
  compose<M extends MessageLike = ChatMessage>(options: ComposeOptions<M>): Promise<ComposedPrompt<M>>;
  /** Adds texts to the memory source, as they are. Rejects with `MemorySourceError`. */
  add(userId: string, texts: readonly string[]): Promise<readonly { readonly id: string; readonly memory: string }[]>;
  /** The engine dropped these requests' cache. */
  evict(requestIds: readonly string[]): Promise<Eviction>;
  /** What the engine reported of a request. Token counts. */
  feedback(
    userId: string,
    requestId: string,
    observed: { cachedTokens?: number; promptTokens?: number; ttftMs?: number },
  ): Promise<Feedback>;
  /** Forgets a memory for good. */
  forgetMemory(userId: string, memoryId: string): Promise<Forgetting>;
  /** Forgets everything kept of a user. */
  forgetUser(userId: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens memstem in-process. Reads no environment variables. Throws {@link InvalidRequestError} for options that are wrong and
 * `DatabaseOpenError` where the data directory cannot be used.
 */
export function createMemstem(options: MemstemOptions = {}): MemstemClient {
  const { dataDir, source, searchTimeoutMs } = options;
  const memstem = assemble(
    readSettings({
      MEMSTEM_DATA_DIR: dataDir,
      MEMSTEM_SOURCE: source?.kind,
      MEMSTEM_MEM0_URL: source !== undefined && "url" in source ? source.url : undefined,
      MEMSTEM_MEM0_API_KEY: source !== undefined && "apiKey" in source ? source.apiKey : undefined,
      MEMSTEM_SEARCH_TIMEOUT_MS: searchTimeoutMs?.toString(),
    }),
  );
  return {
    compose: async <M extends MessageLike>(request: ComposeOptions<M>) => {
      const answer = await memstem.compose(readComposeOptions(request));
      // Given messages come back with text added; what memstem adds itself is a plain system or user message, which every type has.
      return { ...answer, messages: [...answer.messages] as MessageLike[] as M[] };
    },
    add: async (userId, texts) => {
      const checked = read("texts", field.memoryTexts, texts).map((text) => ({ text }));
      const kept = await memstem.addMemories(read("userId", field.userId, userId), null, checked);
      return kept.map(({ id, text }) => ({ id, memory: text }));
    },
    evict: async (requestIds) => memstem.evict(read("requestIds", field.requestIds, requestIds)),
    feedback: async (userId, requestId, observed) =>
      memstem.feedback(
        read("userId", field.userId, userId),
        null,
        read("requestId", field.requestId, requestId),
        observed,
      ),
    forgetMemory: async (userId, memoryId) =>
      memstem.forgetMemory(
        read("userId", field.userId, userId),
        read("memoryId", field.memoryId, memoryId) as MemoryId,
      ),
    forgetUser: async (userId) => {
      await memstem.forgetUser(read("userId", field.userId, userId));
    },
    close: () => memstem.close(),
  };
}

function read<
  S extends
    | typeof field.userId
    | typeof field.requestId
    | typeof field.memoryId
    | typeof field.requestIds
    | typeof field.memoryTexts,
>(name: string, schema: S, value: unknown): S["_output"] {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data as S["_output"];
  throw new InvalidRequestError(
    fieldIssues(parsed.error).map((issue) => ({
      ...issue,
      field: issue.field === "body" ? name : `${name}${issue.field}`,
    })),
  );
}
