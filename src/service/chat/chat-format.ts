/*
 * Wire formats of the proxy's prompts: what body an engine is sent, and how its answer is read while it is passed on.
 */

import type { ChatMessage } from "../../core/index.js";
import { isRecord, listIn, record } from "../../core/text/json.js";
import type { EngineAdapter } from "../../engines/adapters/engine-adapter.js";
import {
  type ChatDialect,
  type MessagesBody,
  toChatCompletion,
  withComposedMessages,
} from "../../engines/anthropic/messages-request.js";
import { chatHeaders } from "../../engines/anthropic/messages-upstream.js";
import { isWholeText } from "../../engines/turns/streamed-turn.js";
import { callFields } from "../../engines/upstream/tool-calls.js";
import type { HeaderPair } from "../../engines/upstream/upstream.js";
import type { ComposeAnswer } from "../base/call-types.js";

/** A body of a client or for the engine. */
export type ProxiedBody = Readonly<Record<string, unknown>>;

/** A client's request, as far as what is sent to its engine depends on it. */
export interface ClientRequest {
  /** The client's body, without memprefix's fields. */
  readonly body: ProxiedBody;
  /** `?` included, or empty. */
  readonly query: string;
  readonly headers: readonly HeaderPair[];
  /** Default: chat completions. */
  readonly format?: ChatFormat | undefined;
}

/** A wire format of the proxy: where a prompt is sent, in what body, and how the answer is read. */
export interface ChatFormat {
  /** Relative to the API's base URL: `chat/completions`. */
  readonly path: string;
  /** Whether it is chat completions: only there is usage requested. */
  readonly isChat: boolean;
  /**
   * The body for the engine.
   *
   * @param own the client's, without memprefix's fields
   * @param messages the composed prompt; null: the client's own messages
   */
  bodyOf(own: ProxiedBody, messages: readonly ChatMessage[] | null): ProxiedBody;
  /**
   * The body to convert where the engine has no such route, if it is not {@link bodyOf}'s; null: it is.
   *
   * @param own the client's, without memprefix's fields
   * @param messages the composed prompt; null: the client's own messages
   */
  convertibleOf?(own: ProxiedBody, messages: readonly ChatMessage[] | null): ProxiedBody | null;
  /** Whether a body has effects at the engine, and so is never sent twice. Absent: it has none. */
  isOnce?(body: ProxiedBody): boolean;
  /**
   * The body of a request for as few tokens as the format allows, that has the engine compute a prompt's prefix. Null: none is sent.
   *
   * @param own the client's, without memprefix's fields
   */
  warmUpOf(own: ProxiedBody, prefix: readonly ChatMessage[]): ProxiedBody | null;
  /** A prompt as a chat completion, as depth probes need: only chats have log probabilities everywhere. Null: no chat says it. */
  probeOf(
    own: ProxiedBody,
    messages: readonly ChatMessage[],
    headers: readonly HeaderPair[],
    dialect: ChatDialect,
  ): ProbeRequest | null;
  /** Reads the usage of its answers. Absent: the engine's adapter does. */
  readonly readUsage?: EngineAdapter["readUsage"];
  /** Reads one answer. */
  answerReader(): AnswerReader;
  /** Called once an answer was read, to its end or to where it broke off. */
  answered?(reader: AnswerReader, composed: Pick<ComposeAnswer, "requestId" | "messages"> | null): void;
}

/** A prompt for a chat completion of one token. */
export interface ProbeRequest {
  readonly body: ProxiedBody;
  readonly headers: readonly HeaderPair[];
}

/** The client's fields for a shorter answer that nobody streams. */
export function forShortAnswer({ stream: _stream, stream_options: _options, n: _n, ...own }: ProxiedBody): ProxiedBody {
  return own;
}

/** OpenAI's chat completions. */
const CHAT_COMPLETIONS: ChatFormat = {
  path: "chat/completions",
  isChat: true,
  bodyOf: (own, messages) => (messages === null ? own : { ...own, messages }),
  warmUpOf: (own, messages) => {
    const { max_tokens: _most, ...same } = forShortAnswer(own);
    const most = "max_completion_tokens" in own ? "max_completion_tokens" : "max_tokens";
    return { ...same, messages, [most]: 1 };
  },
  probeOf: (own, messages, headers) => ({ body: { ...own, messages }, headers }),
  answerReader: () => new ObservedAnswer(),
};

/** The format of a request, chat completions by default. */
export function formatOf({ format }: Pick<ClientRequest, "format">): ChatFormat {
  return format ?? CHAT_COMPLETIONS;
}

/** Anthropic's Messages API. */
export const MESSAGES: ChatFormat = {
  path: "messages",
  isChat: false,
  bodyOf: (own: MessagesBody, messages) => (messages === null ? own : withComposedMessages(own, messages)),
  // A budget of thinking has to be below the answer's tokens; without thinking the prompt would be another.
  warmUpOf: (own, messages) =>
    record(own["thinking"])["budget_tokens"] === undefined
      ? { ...withComposedMessages(forShortAnswer(own), messages), max_tokens: 1 }
      : null,
  probeOf: (own, messages, headers, dialect) => {
    const body = toChatCompletion(withComposedMessages(forShortAnswer(own), messages), dialect);
    return body && { body, headers: chatHeaders(headers) };
  },
  answerReader: () => new ObservedMessage(),
};

/** What an engine's answer says, read while it is passed on. */
export interface AnswerReader {
  /** Takes an answer, or the data of one event of a streamed one; ignores anything else. */
  take(given: unknown, at: number): void;
  /** Whether an event ended the answer, where the format has such events beside `[DONE]`. */
  readonly isOver: boolean;
  /** The whole text of the answer; null where there is none, it is incomplete, or too long. */
  readonly text: string | null;
  /** Arrival of the first token, in the clock's milliseconds; null where there was none, or the answer was not streamed. */
  readonly firstTokenAt: number | null;
  /** What holds token counts, for `readUsage`; null where nothing did. */
  readonly reported: unknown;
}

/** Most characters of an answer that is written back as a memory; a longer one is not. */
export const MAX_ANSWER_CHARACTERS = 100_000;

/** An answer's text, as its pieces come. */
class BoundedText {
  #text: string | null = "";

  append(more: unknown): void {
    if (typeof more !== "string" || this.#text === null) return;
    this.#text = this.#text.length + more.length > MAX_ANSWER_CHARACTERS ? null : this.#text + more;
  }

  /** Null where there is none, or it is longer than {@link MAX_ANSWER_CHARACTERS}. */
  get whole(): string | null {
    return this.#text === "" ? null : this.#text;
  }
}

/** Reads an engine's answer while it is streamed. Holds its first choice's text up to a bound. */
class ObservedAnswer implements AnswerReader {
  readonly #text = new BoundedText();
  #finish: string | null = null;
  #hasCalls = false;
  firstTokenAt: number | null = null;
  /** The last chunk with token counts. */
  reported: unknown = null;
  /** Its end is OpenAI's `[DONE]`, which is no JSON. */
  readonly isOver = false;

  take(given: unknown, at: number): void {
    const { choices, usage, timings } = record(given);
    if (isRecord(usage) || isRecord(timings)) this.reported = given;
    for (const choice of listIn(choices)) {
      const { index, delta, message, finish_reason: finish } = record(choice);
      if (isRecord(delta) && holdsToken(delta)) this.firstTokenAt ??= at;
      if (typeof index === "number" && index !== 0) continue;
      const said = isRecord(delta) ? delta : record(message);
      this.#text.append(said["content"]);
      this.#hasCalls ||= callFields(said).some(({ name }) => name !== "");
      if (typeof finish === "string") this.#finish = finish;
    }
  }

  /** The first choice's text, once it is complete; null where it is not, calls a tool, or is too long. */
  get text(): string | null {
    return isWholeText(this.#finish) && !this.#hasCalls ? this.#text.whole : null;
  }
}

/** Whether a chunk holds the usage and nothing else. */
export function isUsageOnly(given: unknown): boolean {
  if (!isRecord(given) || !isRecord(given["usage"])) return false;
  return Array.isArray(given["choices"]) && given["choices"].length === 0;
}

/** False for the opening chunk, which has the role only: it stands for no token. */
function holdsToken(delta: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(delta).some(
    ([name, value]) =>
      name !== "role" && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
  );
}

/**
 * Reads an answer of `/v1/messages`, or the events of a streamed one. Holds its text up to a bound.
 * Source: https://platform.claude.com/docs/en/build-with-claude/streaming
 */
class ObservedMessage implements AnswerReader {
  readonly #text = new BoundedText();
  #stop: unknown = null;
  #hasCalls = false;
  #usage: Readonly<Record<string, unknown>> | null = null;
  /** What stands beside the usage: llama.cpp's `timings`. */
  #beside: Readonly<Record<string, unknown>> = {};
  firstTokenAt: number | null = null;
  isOver = false;

  take(given: unknown, at: number): void {
    const event = record(given);
    switch (event["type"]) {
      case "message":
        this.#takeMessage(event);
        break;
      case "message_start":
        this.#takeFirstUsage(record(event["message"])["usage"]);
        break;
      case "content_block_start":
        // A text's opening is empty and no token; a call's has its name.
        if (this.#isCall(event["content_block"])) this.firstTokenAt ??= at;
        break;
      case "content_block_delta":
        this.firstTokenAt ??= at;
        this.#text.append(record(event["delta"])["text"]);
        break;
      case "message_delta":
        this.#stop = record(event["delta"])["stop_reason"] ?? this.#stop;
        if (event["timings"] != null) this.#beside = { timings: event["timings"] };
        this.#takeUsage(event["usage"]);
        break;
      case "message_stop":
        this.isOver = true;
    }
  }

  /** Usage as an answer has it: `message_delta` adds to `message_start` and updates it. */
  get reported(): unknown {
    return this.#usage === null ? null : { ...this.#beside, usage: this.#usage };
  }

  get text(): string | null {
    return isWholeText(this.#stop) && !this.#hasCalls ? this.#text.whole : null;
  }

  #takeMessage(message: Readonly<Record<string, unknown>>): void {
    const { content, stop_reason, usage, timings } = message;
    for (const block of Array.isArray(content) ? (content as readonly unknown[]) : [])
      if (!this.#isCall(block) && record(block)["type"] === "text") this.#text.append(record(block)["text"]);
    this.#stop = stop_reason;
    if (timings != null) this.#beside = { timings };
    this.#takeUsage(usage);
  }

  #isCall(block: unknown): boolean {
    const isCall = record(block)["type"] === "tool_use";
    this.#hasCalls ||= isCall;
    return isCall;
  }

  /** No prompt has no tokens: where all counts are 0, they are not known yet. */
  #takeFirstUsage(given: unknown): void {
    if (Object.values(record(given)).some((count) => typeof count === "number" && count > 0)) this.#takeUsage(given);
  }

  #takeUsage(given: unknown): void {
    if (!isRecord(given)) return;
    const said = Object.entries(given).filter(([, count]) => count !== null && count !== undefined);
    this.#usage = { ...this.#usage, ...Object.fromEntries(said) };
  }
}
