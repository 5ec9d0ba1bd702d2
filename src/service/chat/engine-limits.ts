import {
  type ChatMessage,
  type Digest,
  digestOf,
  LruMap,
  sectionAtStart,
  type TokenCounter,
} from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import { listIn, record, text } from "../../core/text/json.js";
import { keepsThoughtsBehindUser, keepsThoughtsByName } from "../../engines/adapters/kept-thoughts.js";
import { bufferBody, isEventStream } from "../../engines/upstream/answer-body.js";
import { mayRefusePrompt, type PromptRefusal, readPromptRefusal } from "../../engines/upstream/engine-errors.js";
import { peekAtFirstEvent } from "../../engines/upstream/first-event.js";
import { ModelLimits, promptTokensWithin } from "../../engines/upstream/model-limits.js";
import type { Upstream, UpstreamAnswer } from "../../engines/upstream/upstream.js";
import { credentialsIn, type HeaderPair, OWN_NAME } from "../../engines/upstream/upstream.js";
import type { ComposeAnswer } from "../base/call-types.js";
import type { ComposeRequest, Destination } from "../compose/compose-request.js";
import type { ClientRequest } from "./chat-request.js";

interface KnownList {
  readonly limits: ModelLimits | null;
  /** Whether its chat template keeps thoughts only after the newest user message; null: the template is hidden. */
  readonly keepsThoughts: boolean | null;
  /** When to request it again, by the clock. */
  readonly askAt: number;
  readonly failures: number;
}

const MOST_TOOL_LISTS = 64;
const MOST_CREDENTIALS = 256;
/** Time-out of a call with its body. */
const TIMEOUT_MS = 5_000;
/** OpenRouter's list of 400 models is 0.6 MB. */
const MAX_LIST_BYTES = 2 * 1024 * 1024;
/** Milliseconds until a list is requested again: the engine may restart with another context length. */
const KNOWN_FOR_MS = 60 * 60 * 1_000;
/** Milliseconds until a failed call is retried; doubled each time, up to {@link KNOWN_FOR_MS}. */
const RETRY_AFTER_MS = 60 * 1_000;
/** Milliseconds between two calls with any credentials. */
const APART_MS = 1_000;

/**
 * An engine's own limits on prompts. Its list of models is requested in the background, after a chat that it answered; until then prompts have
 * no limit. The request has a chat's credentials and no other header; the answer applies only to chats with the same credentials.
 */
export class EngineLimits {
  readonly #lists = new LruMap<string, KnownList>(MOST_CREDENTIALS);
  readonly #toolTokens = new LruMap<Digest, number>(MOST_TOOL_LISTS);
  #askAt = Number.NEGATIVE_INFINITY;

  /** @param isRead false: nothing is requested, and no limit is known */
  constructor(
    private readonly upstream: Pick<Upstream, "send">,
    private readonly isRead: boolean,
    private readonly clock: () => number,
  ) {}

  /** What is known of the engine that a chat's prompt goes to; the limit leaves room for the answer. */
  destinationOf(chat: ClientRequest, countTokens: TokenCounter): Destination {
    const model = modelName(chat.body["model"]);
    const limit = this.#lists.get(credentialsOf(chat).key)?.limits?.of(model) ?? null;
    return {
      model,
      promptTokens: limit === null ? null : promptTokensWithin(limit, answerTokens(chat.body)),
      besideTokens: this.#tokensOfTools(chat, countTokens),
    };
  }

  /** Whether memories go into tool results, by the engine's chat template, else by the model's name. */
  isInResult(chat: ClientRequest): boolean {
    const model = modelName(chat.body["model"]);
    const { limits = null, keepsThoughts = null } = this.#lists.get(credentialsOf(chat).key) ?? {};
    return keepsThoughts ?? [model, ...(limits?.namesOf(model) ?? [])].some(keepsThoughtsByName);
  }

  /** Requests the engine's list after this chat, if it is due. Returns at once. */
  answered(chat: ClientRequest): void {
    if (!this.isRead) return;
    const now = this.clock();
    const { key, headers } = credentialsOf(chat);
    const known = this.#lists.get(key) ?? { limits: null, keepsThoughts: null, askAt: now, failures: 0 };
    if (now < known.askAt || now < this.#askAt) return;
    this.#askAt = now + APART_MS;
    // Prevents a second request during this one.
    this.#lists.set(key, { ...known, askAt: now + RETRY_AFTER_MS });
    // Not awaited, so it must not reject. A failure is retried after {@link RETRY_AFTER_MS}.
    this.#ask(key, known, chat.query, headers).catch(() => {});
  }

  async #ask(key: string, known: KnownList, query: string, headers: readonly HeaderPair[]): Promise<void> {
    const limits = ModelLimits.read(await this.#read("models", query, headers));
    const keepsThoughts = limits?.isLlamaCpp ? await this.#keepsThoughts(query, headers) : null;
    this.#lists.set(key, { ...this.#next(known, limits), keepsThoughts });
  }

  /** Tokens of a chat's tools as JSON: an estimate, as each engine formats them in its own way. */
  #tokensOfTools({ api, body }: ClientRequest, countTokens: TokenCounter): number {
    const given = api.toolFields.flatMap((field) => listIn(body[field]));
    if (given.length === 0) return 0;
    const text = JSON.stringify(given);
    return keptIn(this.#toolTokens, digestOf(text), () => countTokens(text));
  }

  #next({ failures }: KnownList, limits: ModelLimits | null): Omit<KnownList, "keepsThoughts"> {
    if (limits !== null) return { limits, askAt: this.clock() + KNOWN_FOR_MS, failures: 0 };
    const retryMs = Math.min(KNOWN_FOR_MS, RETRY_AFTER_MS * 2 ** failures);
    return { limits: null, askAt: this.clock() + retryMs, failures: Math.min(failures + 1, 16) };
  }

  /**
   * By the template of a llama.cpp server; null if it is hidden.
   * Source: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md, "GET /props"
   */
  async #keepsThoughts(query: string, headers: readonly HeaderPair[]): Promise<boolean | null> {
    const props = await this.#read("/props", query, headers);
    // If a model has two templates, this one applies to requests with tools.
    const { chat_template_tool_use: ofTools, chat_template: template } = record(props);
    const used = text(ofTools) === "" ? template : ofTools;
    return typeof used === "string" ? keepsThoughtsBehindUser(used) : null;
  }

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
      // Closes the connection if the answer was not read to its end.
      stop.abort();
    }
  }
}

/** The headers of a chat that its engine's list is requested with, and the key of the result. */
function credentialsOf({ query, headers }: ClientRequest): { readonly key: string; readonly headers: HeaderPair[] } {
  const credentials = credentialsIn(headers);
  return { key: digestOf(JSON.stringify([query, credentials])), headers: [...credentials, OWN_NAME] };
}

function answerTokens(body: Readonly<Record<string, unknown>>): number | null {
  const asked = body["max_completion_tokens"] ?? body["max_tokens"] ?? body["max_output_tokens"];
  return typeof asked === "number" && Number.isSafeInteger(asked) && asked > 0 ? asked : null;
}

export interface PromptConstraints {
  /** Most tokens, by memprefix's count; null: unknown. */
  readonly acceptedTokens: number | null;
  readonly inResult: boolean;
}

export interface ConstraintsKey {
  readonly tenant: object;
  readonly userId: string;
  readonly model: unknown;
}

/** Most (user, model) pairs, and most models without user messages after tool results, that are remembered per tenant. */
const MOST_KNOWN = 1_000;
/** A limit expires: the engine may restart with a larger context under the same name. */
const LIMIT_KNOWN_FOR_MS = 60 * 60 * 1_000;
/** Margin below the engine's limit: the ratio of its tokens to ours varies. */
const MARGIN = 0.95;

/** Constraints learned from refusals, each of which they cost once. Per tenant: a token limit per user and model, a placement per model. */
export class KnownConstraints {
  readonly #limits = new WeakMap<object, LruMap<string, { readonly tokens: number; readonly until: number }>>();
  readonly #insideResults = new WeakMap<object, LruMap<string, true>>();

  constructor(private readonly clock: () => number) {}

  of(of: ConstraintsKey): PromptConstraints {
    const limit = this.#limits.get(of.tenant)?.get(limitKey(of));
    return {
      acceptedTokens: limit !== undefined && limit.until > this.clock() ? limit.tokens : null,
      inResult: this.#insideResults.get(of.tenant)?.get(modelName(of.model)) === true,
    };
  }

  /** The engine refused a prompt, and accepted one under these constraints. */
  learn(of: ConstraintsKey, { acceptedTokens, inResult }: PromptConstraints): void {
    if (inResult) keptIn(this.#insideResults, of.tenant, () => new LruMap(MOST_KNOWN)).set(modelName(of.model), true);
    if (acceptedTokens === null) return;
    const limits = keptIn(this.#limits, of.tenant, () => new LruMap(MOST_KNOWN));
    limits.set(limitKey(of), { tokens: acceptedTokens, until: this.clock() + LIMIT_KNOWN_FOR_MS });
  }
}

/** The constraints to try next; null: the engine refuses the client's own messages, and none of them can be left out. */
export function constraintsAfter(
  refusal: PromptRefusal,
  composed: ComposeAnswer,
  terms: PromptConstraints,
  history: ComposeRequest["history"],
): PromptConstraints | null {
  const { messages, plan } = composed;
  if (refusal.kind === "role_order") return hasOwnMessage(messages) ? { ...terms, inResult: true } : null;
  const mayCut =
    plan.layout === "conversation" && history !== "exact" && messages.filter(({ role }) => role === "user").length > 1;
  if (!mayCut && !messages.some(holdsMemories)) return null;
  return { ...terms, acceptedTokens: Math.floor(roomIn(refusal, plan.totalTokens)) };
}

/** Tokens to try, by memprefix's count, after a prompt of `tokens` was refused; always fewer. */
function roomIn({ limitTokens, promptTokens }: PromptRefusal & { kind: "context_length" }, tokens: number): number {
  if (limitTokens !== null && promptTokens !== null && limitTokens < promptTokens)
    return MARGIN * tokens * (limitTokens / promptTokens);
  // A prompt near the limit by our count may exceed it by the engine's.
  if (limitTokens !== null && limitTokens < tokens) return 0.8 * limitTokens;
  return tokens / 2;
}

/** Whether memories have their own message after a tool's result. */
function hasOwnMessage(messages: readonly ChatMessage[]): boolean {
  return messages.some(({ role, content }, at) => {
    const before = messages[at - 1]?.role;
    const isBehindResult = before === "tool" || before === "function";
    const text = textsOf(content).join("");
    return role === "user" && isBehindResult && text !== "" && sectionAtStart(text) === text;
  });
}

function holdsMemories({ content }: ChatMessage): boolean {
  return textsOf(content).some((text) => text.includes("<memories>\n"));
}

function textsOf(content: ChatMessage["content"]): readonly string[] {
  const texts = typeof content === "string" ? [content] : (content ?? []).map((part) => part["text"]);
  return texts.filter((text) => typeof text === "string");
}

function limitKey(of: ConstraintsKey): string {
  return JSON.stringify([of.userId, modelName(of.model)]);
}

const MAX_ERROR_BYTES = 256 * 1024;
/** Stands for the status of an error inside an answer. */
const IN_ANSWER = 400;

/** Checks whether the engine refused a prompt. `end` ends a body that will not be read. Rejects with `UpstreamError` if the answer breaks off. */
export async function checkForRefusal(answer: UpstreamAnswer) {
  const isSuccess = answer.status < 300;
  if (isSuccess && isEventStream(answer)) {
    const { event, body, end } = await peekAtFirstEvent(answer.body);
    return { refusal: event === null ? null : readPromptRefusal(IN_ANSWER, event), answer: { ...answer, body }, end };
  }
  if (!isSuccess && !mayRefusePrompt(answer.status)) return { refusal: null, answer, end: null };
  const { whole, body } = await bufferBody(answer.body, MAX_ERROR_BYTES);
  const refusal = whole === null ? null : readPromptRefusal(isSuccess ? IN_ANSWER : answer.status, whole);
  return { refusal, answer: { ...answer, body }, end: null };
}

/** Milliseconds until a refused option is tried again: the engine may have been updated. */
const ASK_AGAIN_AFTER_MS = 10 * 60_000;
const MAX_MODELS = 256;

/** Models for which an engine refused an option that memprefix added. Per tenant and for a while: a client may have caused it. */
export class RefusedModels {
  readonly #until = new WeakMap<object, LruMap<string, number>>();

  constructor(private readonly clock: () => number) {}

  /** @param tenant the same object for all of one tenant's requests */
  has(tenant: object, model: string): boolean {
    return this.clock() < (this.#until.get(tenant)?.get(model) ?? Number.NEGATIVE_INFINITY);
  }

  add(tenant: object, model: string): void {
    const models = keptIn(this.#until, tenant, () => new LruMap(MAX_MODELS));
    models.set(model, this.clock() + ASK_AGAIN_AFTER_MS);
  }
}

const MODEL_CHARACTERS = 200;

/** The model that a client's body names, truncated for comparison; empty: none. */
export function modelName(model: unknown): string {
  return typeof model === "string" ? model.slice(0, MODEL_CHARACTERS) : "";
}
