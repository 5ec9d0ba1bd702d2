import { z } from "zod";
import { streamedAnswer, wholeAnswer } from "../http/routes/openai-engine.js";
import { type Asked, type Counted, lastQuestion, partsText, type Said, type Turn } from "./agent-model.js";

const body = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).nullish(),
  tool_choice: z.union([z.string(), z.looseObject({ function: z.looseObject({ name: z.string() }) })]).nullish(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
  stream: z.boolean().nullish(),
});

/** Reads a chat completion. Throws where it is none. */
export function readChatRequest(given: unknown): Asked {
  const { messages, tools, tool_choice: choice, response_format: format, stream } = body.parse(given);
  const turns = messages.map(({ role, content }): Turn => {
    const kind = role === "user" ? "user" : role === "tool" ? "result" : "other";
    return { role: kind, text: partsText(content) };
  });
  return {
    prompt: [tools ?? [], ...messages].map((part) => JSON.stringify(part)),
    ...lastQuestion(turns),
    tools: (tools ?? []).map(({ function: { name } }) => name),
    forced: typeof choice === "object" && choice !== null ? choice.function.name : choice === "required" ? "any" : null,
    asJson: format?.type === "json_schema" || format?.type === "json_object",
    stream: stream === true,
  };
}

function chatUsage({ prompt, cached }: Counted) {
  return {
    prompt_tokens: prompt,
    completion_tokens: 2,
    total_tokens: prompt + 2,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

/** Frameworks know a message by its id. */
const idOf = (turn: number) => ({ id: `chatcmpl-${turn}` });

export function chatAnswer(said: Said, turn: number, counted: Counted, choice: object = {}): object {
  if (said.kind === "text") return { ...wholeAnswer(said.text, chatUsage(counted), {}, choice), ...idOf(turn) };
  const call = { id: said.id, type: "function", function: { name: said.name, arguments: said.json } };
  const message = { content: null, tool_calls: [call] };
  return { ...wholeAnswer("", chatUsage(counted), message, { finish_reason: "tool_calls" }), ...idOf(turn) };
}

/** The chunks of a stream; the usage in one of its own where `counted` is not null. */
export function chatChunks(said: Said, turn: number, counted: Counted | null): readonly object[] {
  const usage = counted === null ? null : chatUsage(counted);
  const text = said.kind === "text" ? said.text : "";
  const chunks = streamedAnswer(text, usage).map((chunk) => ({ ...chunk, ...idOf(turn) }));
  if (said.kind === "text") return chunks;
  const [head = {}, , ...rest] = chunks;
  const delta = (given: object) => ({
    ...head,
    choices: [{ index: 0, delta: { tool_calls: [{ index: 0, ...given }] }, logprobs: null, finish_reason: null }],
  });
  const half = Math.ceil(said.json.length / 2);
  const end = { ...head, choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "tool_calls" }] };
  return [
    head,
    delta({ id: said.id, type: "function", function: { name: said.name, arguments: "" } }),
    delta({ function: { arguments: said.json.slice(0, half) } }),
    delta({ function: { arguments: said.json.slice(half) } }),
    end,
    ...rest,
  ];
}
