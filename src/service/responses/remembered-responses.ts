import {
  type AgentId,
  type ChatMessage,
  type ConversationId,
  type Digest,
  digestOf,
  keptIn,
  LruMap,
  type UserId,
} from "../../core/index.js";
import type { DeletionWatch } from "../scopes/working-scopes.js";

/** No messages. */
export const NOTHING_SENT: SentPrompt = { count: 0, digest: digestOf("") };

/** What was sent, followed by more messages. */
export function sentWith(sent: SentPrompt, messages: readonly ChatMessage[]): SentPrompt {
  const digest = messages.reduce((before, message) => digestOf(before + toldBy(message)), sent.digest);
  return { count: sent.count + messages.length, digest };
}

/** Whether a prompt begins with what was sent. */
export function continues(prompt: readonly ChatMessage[], sent: SentPrompt): boolean {
  if (prompt.length < sent.count) return false;
  return sentWith(NOTHING_SENT, prompt.slice(0, sent.count)).digest === sent.digest;
}

/** What the engine computes of a message; cache marks, which split texts into parts, do not count. */
function toldBy({ role, content, tool_calls: calls, tool_call_id: id }: ChatMessage): string {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);
  const texts = parts.map((part) => (part.type === "text" ? part["text"] : ""));
  const others = parts.filter(({ type }) => type !== "text");
  return JSON.stringify([role, texts.join(""), others, calls ?? null, id ?? null]);
}

/** Whose response it is, and its id; the same object stands for one tenant. */
export interface ResponseKey {
  readonly tenant: object;
  readonly userId: UserId;
  readonly agentId: AgentId | null;
  /** Of a response, or of a conversation of the engine's. */
  readonly id: string;
}

/** The messages that an engine was sent and answered, as a digest that grows with them. */
export interface SentPrompt {
  readonly count: number;
  readonly digest: Digest;
}

/** One response, and what led to it. */
export interface RememberedResponse {
  /** Null: none was named. */
  readonly conversationId: ConversationId | null;
  /** The response before it; null: it began the conversation. */
  readonly previous: ResponseKey | null;
  /** What the request added, without memories and instructions, and the output. */
  readonly messages: readonly ChatMessage[];
  /** Whether the engine keeps the response, and takes its id for what was said. */
  readonly isHeld: boolean;
  /** What stands before the next request's input at such an engine. */
  readonly sent: SentPrompt;
  readonly watch: DeletionWatch;
}

/** A response with everything that was said up to it. */
export interface KnownResponse extends RememberedResponse {
  /** Null: a part of it was forgotten, or deleted. */
  readonly history: readonly ChatMessage[] | null;
}

/** Bounds of what is remembered of all tenants together. */
const MOST_RESPONSES = 100_000;
const MAX_CHARACTERS = 64 * 1024 * 1024;

/** A remembered response with its size, as JSON. */
interface Entry {
  readonly response: RememberedResponse;
  readonly characters: number;
}

/**
 * Which response continues which conversation, and what was said in it. In memory only, the least recently used forgotten first; what was
 * composed is found in the store after a restart (`StoredResponses`).
 */
export class RememberedResponses {
  readonly #entries = new LruMap<string, Entry>();
  readonly #tenants = new WeakMap<object, number>();
  #tenantCount = 0;
  #characters = 0;

  constructor(
    private readonly most = MOST_RESPONSES,
    private readonly maxCharacters = MAX_CHARACTERS,
  ) {}

  /** Null: not remembered. What a user deleted is not used again, and goes. */
  async of(key: ResponseKey): Promise<KnownResponse | null> {
    const response = this.#use(key);
    if (response === null) return null;
    const turns = [response.messages];
    // An engine may give two responses one id.
    const seen = new Set([response]);
    let oldest = response;
    for (let previous = response.previous; previous !== null; previous = oldest.previous) {
      const before = this.#use(previous);
      if (before === null || seen.has(before)) return { ...response, history: null };
      turns.push(before.messages);
      seen.add(before);
      oldest = before;
    }
    if (!(await oldest.watch.isDeleted())) return { ...response, history: turns.reverse().flat() };
    this.#forget(key);
    return { ...response, history: null };
  }

  set(key: ResponseKey, response: RememberedResponse): void {
    const characters = JSON.stringify(response.messages).length;
    const name = this.#nameOf(key);
    this.#drop(name);
    if (characters > this.maxCharacters) return;
    this.#entries.set(name, { response, characters });
    this.#characters += characters;
    while (this.#entries.size > this.most || this.#characters > this.maxCharacters)
      this.#drop(this.#entries.oldest as string);
  }

  #use(key: ResponseKey): RememberedResponse | null {
    return this.#entries.get(this.#nameOf(key))?.response ?? null;
  }

  /** Forgets a response and all before it. */
  #forget(last: ResponseKey): void {
    for (let key: ResponseKey | null = last; key !== null; ) {
      const name = this.#nameOf(key);
      key = this.#entries.peek(name)?.response.previous ?? null;
      this.#drop(name);
    }
  }

  #drop(name: string): void {
    this.#characters -= this.#entries.peek(name)?.characters ?? 0;
    this.#entries.delete(name);
  }

  #nameOf({ tenant, userId, agentId, id }: ResponseKey): string {
    const number = keptIn(this.#tenants, tenant, () => ++this.#tenantCount);
    return JSON.stringify([number, userId, agentId, id]);
  }
}
