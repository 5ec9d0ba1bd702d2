import { type Digest, digestOf, LruMap, type TokenCounter, type ToolMemories } from "../../core/index.js";
import { keepsThoughtsBehindUser, keepsThoughtsByName } from "../../core/prompt/kept-thoughts.js";
import { record } from "../../engines/upstream/json-values.js";
import { type ModelLimit, ModelLimits, promptTokensWithin } from "../../engines/upstream/model-limits.js";
import type { Upstream } from "../../engines/upstream/upstream.js";
import { credentialsIn, type HeaderPair, OWN_NAME } from "../../engines/upstream/upstream-headers.js";
import type { Destination } from "../compose/compose-request.js";
import { modelName } from "../learning/refused-models.js";
import { bufferBody } from "./buffered-body.js";
import type { ClientRequest } from "./chat-format.js";

/** Where an engine's own limit on prompts comes from: its list of models, or its configuration. */
export type ContextLimit = "listed" | { readonly contextTokens: number };

/** What an engine's list says to a client with certain credentials. */
interface KnownList {
  readonly limits: ModelLimits | null;
  /** Whether its chat template keeps thoughts only after the newest user's message; null: it does not show its template. */
  readonly keepsThoughts: boolean | null;
  /** When to ask again, in the clock's milliseconds. */
  readonly askAt: number;
  /** Failed calls since the last good one. */
  readonly failures: number;
}

/** Most lists of tools whose tokens are remembered. */
const MOST_TOOL_LISTS = 64;
/** Most credentials whose list is remembered. */
const MOST_CREDENTIALS = 256;
/** Time-out of a call, the body included, in milliseconds. */
const TIMEOUT_MS = 5_000;
/** OpenRouter's list of 400 models has 0.6 MB. */
const MAX_LIST_BYTES = 2 * 1024 * 1024;
/** Milliseconds until a list is asked for again: the engine may be restarted with another context. */
const KNOWN_FOR_MS = 60 * 60 * 1_000;
/** Milliseconds until the second attempt after a failure; doubled with each, up to {@link KNOWN_FOR_MS}. */
const RETRY_AFTER_MS = 60 * 1_000;
/** Milliseconds between two calls of any credentials. */
const APART_MS = 1_000;

/**
 * What an engine says of the prompts that it takes. Its list of models is asked for in the background, after a chat that it answered; until
 * it is known, prompts have no limit. It is asked with a chat's credentials and no other header of its client's, and the answer is used for
 * chats with the same credentials only. Failures are ignored and retried later.
 */
export class EngineLimits {
  readonly #lists = new LruMap<string, KnownList>(MOST_CREDENTIALS);
  /** Tokens of lists of tools: an agent sends the same one with every chat. */
  readonly #toolTokens = new LruMap<Digest, number>(MOST_TOOL_LISTS);
  #askAt = Number.NEGATIVE_INFINITY;

  /**
   * @param source null: no limit is known, and nothing is asked
   * @param clock milliseconds, monotonic
   */
  constructor(
    private readonly upstream: Pick<Upstream, "send">,
    private readonly source: ContextLimit | null,
    private readonly clock: () => number,
  ) {}

  /** What is known of the engine that a chat's prompt goes to; the limit leaves room for the answer. */
  destinationOf(chat: ClientRequest, countTokens: TokenCounter): Destination {
    const model = modelName(chat.body["model"]);
    const limit = this.#limitOf(chat, model);
    return {
      model,
      promptTokens: limit === null ? null : promptTokensWithin(limit, answerTokens(chat.body)),
      besideTokens: this.#tokensOfTools(chat.body, countTokens),
    };
  }

  /**
   * Where memories have to stand after a tool's result, by the template that the engine shows, else by the names of its model; null: anywhere.
   */
  toolMemoriesOf(chat: ClientRequest): ToolMemories | null {
    const model = modelName(chat.body["model"]);
    const { limits = null, keepsThoughts = null } = this.#lists.get(credentialsOf(chat).key) ?? {};
    const isKept = keepsThoughts ?? [model, ...(limits?.namesOf(model) ?? [])].some(keepsThoughtsByName);
    return isKept ? "in_result" : null;
  }

  /** The engine answered this chat: requests its list, where that is due. Returns at once. */
  answered(chat: ClientRequest): void {
    if (this.source !== "listed") return;
    const now = this.clock();
    const { key, headers } = credentialsOf(chat);
    const known = this.#lists.get(key) ?? { limits: null, keepsThoughts: null, askAt: now, failures: 0 };
    if (now < known.askAt || now < this.#askAt) return;
    this.#askAt = now + APART_MS;
    // No second request while this call is under way.
    this.#lists.set(key, { ...known, askAt: now + RETRY_AFTER_MS });
    void this.#list(chat.query, headers).then(async (limits) => {
      const keepsThoughts = limits?.isLlamaCpp ? await this.#keepsThoughts(chat.query, headers) : null;
      this.#lists.set(key, { ...this.#next(known, limits), keepsThoughts });
    });
  }

  /** Tokens of a chat's tools as JSON, which engines put into the prompt in forms of their own: an estimate. */
  #tokensOfTools({ tools, functions }: ClientRequest["body"], countTokens: TokenCounter): number {
    const given = [tools, functions].filter((list) => Array.isArray(list) && list.length > 0);
    if (given.length === 0) return 0;
    const text = JSON.stringify(given);
    const digest = digestOf(text);
    const tokens = this.#toolTokens.get(digest) ?? countTokens(text);
    this.#toolTokens.set(digest, tokens);
    return tokens;
  }

  #limitOf(chat: ClientRequest, model: string): ModelLimit | null {
    const { source } = this;
    if (source === null) return null;
    if (source !== "listed") return { ...source, promptTokens: null };
    return this.#lists.get(credentialsOf(chat).key)?.limits?.of(model) ?? null;
  }

  #next({ failures }: KnownList, limits: ModelLimits | null): Omit<KnownList, "keepsThoughts"> {
    if (limits !== null) return { limits, askAt: this.clock() + KNOWN_FOR_MS, failures: 0 };
    const retryMs = Math.min(KNOWN_FOR_MS, RETRY_AFTER_MS * 2 ** failures);
    return { limits: null, askAt: this.clock() + retryMs, failures: Math.min(failures + 1, 16) };
  }

  /** Null where the engine gives no list. */
  async #list(query: string, headers: readonly HeaderPair[]): Promise<ModelLimits | null> {
    return ModelLimits.read(await this.#read("models", query, headers));
  }

  /**
   * By the template of a llama.cpp server; null where it does not show it.
   * Source: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md, "GET /props"
   */
  async #keepsThoughts(query: string, headers: readonly HeaderPair[]): Promise<boolean | null> {
    const props = await this.#read("/props", query, headers);
    const template = record(props)["chat_template"];
    return typeof template === "string" ? keepsThoughtsBehindUser(template) : null;
  }

  /** What the engine says under a path; undefined where it says nothing. */
  async #read(path: string, query: string, headers: readonly HeaderPair[]): Promise<unknown> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), TIMEOUT_MS);
    timer.unref();
    try {
      const call = { method: "GET", path, query, headers, body: null, isBackground: true } as const;
      const { status, body } = await this.upstream.send(call, stop.signal);
      const { whole } = await bufferBody(body, MAX_LIST_BYTES);
      return whole === null || status !== 200 ? undefined : (JSON.parse(whole) as unknown);
    } catch {
      // Chats show whether the engine is reachable.
      return undefined;
    } finally {
      clearTimeout(timer);
      // Closes the connection where the answer was not read to its end.
      stop.abort();
    }
  }
}

/** The part of a chat's headers that its engine's list is requested with, and the key of what is known by them. */
function credentialsOf({ query, headers }: ClientRequest): { readonly key: string; readonly headers: HeaderPair[] } {
  const credentials = credentialsIn(headers);
  return { key: digestOf(JSON.stringify([query, credentials])), headers: [...credentials, OWN_NAME] };
}

/** Tokens that a chat allows its answer; null where it does not say. */
function answerTokens(body: Readonly<Record<string, unknown>>): number | null {
  const asked = body["max_completion_tokens"] ?? body["max_tokens"] ?? body["max_output_tokens"];
  return typeof asked === "number" && Number.isSafeInteger(asked) && asked > 0 ? asked : null;
}
