import { type DiagnosingProvider, LruMap, type RequestId } from "../../core/index.js";
import { record } from "../../engines/upstream/json-values.js";
import { formatOf, type ProxiedBody } from "./chat-format.js";
import type { ChatRequest } from "./chat-request.js";

/** An answer of a conversation, as its provider knows it. */
interface NamedAnswer {
  readonly id: string;
  /** Null: its prompt was sent unmodified. */
  readonly requestId: RequestId | null;
}

/** What a request's provider is asked to compare it with. */
export interface Comparison {
  /** Whether it names an earlier answer. */
  readonly isAsked: boolean;
  /** The request of that answer; null: none, or not known. */
  readonly with: RequestId | null;
}

/** Nothing is compared. */
const NOT_COMPARED: Comparison = { isAsked: false, with: null };

/** Most conversations of one tenant whose newest answer is known. */
const MOST_CONVERSATIONS = 10_000;
/** Longest id that is kept. */
const MAX_ID = 256;

const PATHS: Readonly<Record<DiagnosingProvider, string>> = { openai: "responses", anthropic: "messages" };

/**
 * Asks a provider why a prompt missed its cache: each request of a conversation names the answer before it. In memory only: after a restart
 * a conversation's first comparison is left out. What the client itself asks for stays.
 */
export class CacheDiagnostics {
  readonly #newest = new WeakMap<object, LruMap<string, NamedAnswer>>();

  /** @param provider null: nothing is asked */
  constructor(private readonly provider: DiagnosingProvider | null) {}

  /**
   * The body with the question, and what it is compared with.
   *
   * @param tenant whose request it is: the same object for all of one tenant's
   */
  asked(
    tenant: object,
    request: ChatRequest,
    body: ProxiedBody,
  ): { readonly body: ProxiedBody; readonly comparison: Comparison } {
    const newest = this.#newestOf(tenant, request);
    if (formatOf(request).path === PATHS.openai) return this.#askedOpenAi(body, newest);
    const { diagnostics } = body;
    if (diagnostics != null)
      return { body, comparison: comparisonWith(record(diagnostics)["previous_message_id"], newest) };
    if (newest === undefined || this.provider !== "anthropic") return { body, comparison: NOT_COMPARED };
    // Null for a conversation's first: the provider keeps only what asks.
    const previous_message_id = newest?.id ?? null;
    return {
      body: { ...body, diagnostics: { previous_message_id } },
      comparison: comparisonWith(previous_message_id, newest),
    };
  }

  /** An answer of a conversation, for its next request to name. */
  answered(tenant: object, request: ChatRequest, id: string | null, requestId: RequestId | null): void {
    const name = this.#nameOf(request);
    if (name === null || id === null || id.length > MAX_ID) return;
    const newest = this.#newest.get(tenant) ?? new LruMap<string, NamedAnswer>(MOST_CONVERSATIONS);
    this.#newest.set(tenant, newest);
    newest.set(name, { id, requestId });
  }

  #askedOpenAi(body: ProxiedBody, newest: NamedAnswer | null | undefined) {
    const options = body["prompt_cache_options"];
    const own = record(options)["comparison_response_id"] ?? undefined;
    const isOpen = options == null || (typeof options === "object" && own === undefined);
    // A response that is continued need not be the newest.
    const { previous_response_id: continued } = body;
    const id = typeof continued === "string" ? continued : newest?.id;
    if (newest === undefined || id === undefined || this.provider !== "openai" || !isOpen)
      return { body, comparison: comparisonWith(own, newest) };
    const asking = { ...(options as object | null | undefined), comparison_response_id: id };
    return { body: { ...body, prompt_cache_options: asking }, comparison: comparisonWith(id, newest) };
  }

  /** Null: its conversation has no answer yet; undefined: it is of no conversation, or nothing is asked here. */
  #newestOf(tenant: object, request: ChatRequest): NamedAnswer | null | undefined {
    const name = this.#nameOf(request);
    return name === null ? undefined : (this.#newest.get(tenant)?.get(name) ?? null);
  }

  #nameOf(request: ChatRequest): string | null {
    const { userId, agentId, conversationId = request.compose?.conversationId ?? null } = request;
    if (this.provider === null || formatOf(request).path !== PATHS[this.provider]) return null;
    if (conversationId === null || (request.notWanted ?? null) !== null) return null;
    return JSON.stringify([userId, agentId, conversationId]);
  }
}

function comparisonWith(id: unknown, newest: NamedAnswer | null | undefined): Comparison {
  if (typeof id !== "string") return NOT_COMPARED;
  return { isAsked: true, with: newest?.id === id ? newest.requestId : null };
}
