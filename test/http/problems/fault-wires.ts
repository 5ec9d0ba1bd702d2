import type { Api } from "../../../src/apis/api/api.js";
import { APIS } from "../../../src/apis/apis.js";
import { chatAnswer, chatChunks } from "../../clients/chat-wire.js";
import { messageAnswer, messageStream } from "../../clients/messages-wire.js";
import { responseAnswer, responseOutput, responseStream } from "../../clients/responses-wire.js";
import type { Counted } from "../../clients/wire.js";
import { eventOf } from "../routes/openai-engine.js";
import { eventsText } from "../routes/responses-engine.js";

/** A request's JSON, and an answer's. */
export type Json = Readonly<Record<string, unknown>>;

/** What a call asks, in no API's form. */
export interface FaultQuestion {
  readonly model: string;
  readonly user: string;
  readonly instructions: string;
  readonly question: string;
  readonly stream: boolean;
  /** Whether the answer is small enough to be remembered. */
  readonly isSmall: boolean;
}

/** An API as a client asks by it, and as an engine speaks it. */
export interface FaultWire {
  readonly api: Api;
  body(asked: FaultQuestion): Json;
  whole(text: string, counted: Counted): object;
  /** A stream of a whole answer. */
  stream(text: string, counted: Counted): string;
  /** One event with a text in it, … */
  delta(text: string): string;
  /** … and what ends a stream of them. */
  end(counted: Counted): string;
  /** The text of a whole answer. */
  textOf(answer: Json): string;
  countedIn(answer: Json): Counted;
  /** Whether a stream came to its end. */
  isEnded(stream: string): boolean;
}

const said = (text: string) => ({ kind: "text", text }) as const;
const listIn = (value: unknown) => (Array.isArray(value) ? (value as readonly Json[]) : []);
const recordIn = (value: unknown) => (typeof value === "object" && value !== null ? (value as Json) : {});
const numberIn = (value: unknown) => (typeof value === "number" ? value : Number.NaN);
const textIn = (part: Json | undefined) => (typeof part?.["text"] === "string" ? part["text"] : "");

const CHAT_WIRE: FaultWire = {
  api: APIS.chat,
  body: ({ model, user, instructions, question, stream }) => ({
    ...{ model, user, stream },
    messages: [
      { role: "system", content: instructions },
      { role: "user", content: question },
    ],
  }),
  whole: (text, counted) => chatAnswer(said(text), 0, counted),
  stream: (text, counted) => `${chatChunks(said(text), 0, counted).map(eventOf).join("")}data: [DONE]\n\n`,
  delta: (text) => eventOf(chatChunks(said(text), 0, null)[1] ?? {}),
  end: (counted) => `${chatChunks(said(""), 0, counted).slice(-2).map(eventOf).join("")}data: [DONE]\n\n`,
  textOf: ({ choices }) => String(recordIn(listIn(choices)[0]?.["message"])["content"]),
  countedIn: ({ usage }) => {
    const { prompt_tokens, prompt_tokens_details } = recordIn(usage);
    return { prompt: numberIn(prompt_tokens), cached: numberIn(recordIn(prompt_tokens_details)["cached_tokens"]) };
  },
  isEnded: (stream) => stream.endsWith("data: [DONE]\n\n"),
};

const response = (text: string, counted: Counted) => {
  const output = responseOutput(said(text), 0);
  return { output, object: responseAnswer(0, output, counted, true) };
};

const RESPONSES_WIRE: FaultWire = {
  api: APIS.responses,
  body: ({ model, user, instructions, question, stream, isSmall }) => ({
    ...{ model, user, instructions, stream, store: isSmall },
    input: question,
  }),
  whole: (text, counted) => response(text, counted).object,
  stream: (text, counted) => {
    const { output, object } = response(text, counted);
    return eventsText(responseStream(object, output));
  },
  delta: (text) => {
    const at = { item_id: "msg_0", output_index: 0, content_index: 0, logprobs: [], sequence_number: 4 };
    return eventsText([{ type: "response.output_text.delta", ...at, delta: text }]);
  },
  end: (counted) => eventsText([{ type: "response.completed", response: response("", counted).object }]),
  textOf: ({ output }) => textIn(listIn(listIn(output).at(-1)?.["content"])[0]),
  countedIn: ({ usage }) => {
    const { input_tokens, input_tokens_details } = recordIn(usage);
    return { prompt: numberIn(input_tokens), cached: numberIn(recordIn(input_tokens_details)["cached_tokens"]) };
  },
  isEnded: (stream) => /\n\nevent: response\.completed\ndata: .*\n\n$/.test(stream),
};

const MESSAGES_WIRE: FaultWire = {
  api: APIS.messages,
  body: ({ model, user, instructions, question, stream }) => ({
    ...{ model, stream, max_tokens: 100, system: instructions, metadata: { user_id: user } },
    messages: [{ role: "user", content: question }],
  }),
  whole: (text, counted) => messageAnswer(said(text), 0, counted),
  stream: (text, counted) => eventsText(messageStream(said(text), 0, counted)),
  delta: (text) => {
    const delta = { type: "text_delta", text };
    return eventsText([{ type: "content_block_delta", index: 0, delta }]);
  },
  end: (counted) => eventsText(messageStream(said(""), 0, counted).slice(-2)),
  textOf: ({ content }) => textIn(listIn(content)[0]),
  countedIn: ({ usage }) => {
    const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens } = recordIn(usage);
    const cached = numberIn(cache_read_input_tokens);
    return { prompt: numberIn(input_tokens) + cached + numberIn(cache_creation_input_tokens), cached };
  },
  isEnded: (stream) => stream.endsWith('\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'),
};

export const FAULT_WIRES: readonly FaultWire[] = [CHAT_WIRE, RESPONSES_WIRE, MESSAGES_WIRE];
