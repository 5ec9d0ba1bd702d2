import type { ServerResponse } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { sendEvents, sendJson } from "../http/routes/openai-engine.js";

/** A message or a body of any of the APIs. */
export type Json = Readonly<Record<string, unknown>>;

/** One step of an agent, as its model says it. */
export interface Step {
  /** Pieces of reasoning, each as long as a stream's delta. */
  readonly thoughts: readonly string[];
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly json: string }[];
}

const call = (id: string, city: string) => ({ id, name: "weather", json: `{"city" : "${city}"}` });
const emoji = "\u{1F914}";

/** What the model says, question by question: two calls at once, one more, an answer; then an answer at once. */
export const STEPS: readonly (readonly Step[])[] = [
  [
    {
      thoughts: ["Two cities,\n", ` at once. ${emoji[0]}`, `${emoji[1]} `],
      text: "I look.",
      calls: [call("c1", "Faro"), call("c2", "Porto")],
    },
    { thoughts: ["  One is left. "], text: "", calls: [call("c3", "\\u00c9vora")] },
    { thoughts: ["All known."], text: "Go to Faro.", calls: [] },
  ],
  [{ thoughts: ["Easy."], text: "Yes.", calls: [] }],
];

/** An engine of chat completions that reasons: what it gives, and what it has to be given again. */
export interface ReasoningEngine {
  /** The reasoning of a message. */
  message(step: Step, number: string): Json;
  /** The same as the deltas of a stream, in front of the text. */
  deltas(step: Step, number: string): readonly Json[];
  /** What stands beside one of its calls. */
  beside?(step: Step, at: number, number: string): Json;
  /** Fields that a returned message has to have as they were given. */
  readonly fields: readonly string[];
}

const whole = ({ thoughts }: Step) => thoughts.join("");
const named = (...names: readonly string[]): ReasoningEngine => ({
  message: (step) => Object.fromEntries(names.map((name) => [name, whole(step)])),
  deltas: ({ thoughts }) => thoughts.map((said) => Object.fromEntries(names.map((name) => [name, said]))),
  fields: names,
});
const detail = (type: string, index: number, fields: Json) => ({
  type,
  ...fields,
  format: "anthropic-claude-v1",
  index,
});

const parts = (thought: string, said: string) => [
  { type: "thinking", thinking: [{ type: "text", text: thought }] },
  ...(said === "" ? [] : [{ type: "text", text: said }]),
];

const litellmBlocks = (step: Step, number: string) => [
  { type: "thinking", thinking: whole(step), signature: `sig-${number}+/=` },
  { type: "redacted_thinking", data: `enc-${number}` },
];

export const ENGINES: Readonly<Record<string, ReasoningEngine>> = {
  "DeepSeek's, with reasoning_content": named("reasoning_content"),
  "vLLM's, with reasoning": named("reasoning"),
  "vLLM's, with both names": named("reasoning", "reasoning_content"),
  "OpenRouter's, with signed details": {
    message: (step, number) => ({
      reasoning: whole(step),
      reasoning_details: [
        detail("reasoning.text", 0, { text: whole(step), signature: `sig-${number}+/=` }),
        detail("reasoning.encrypted", 1, { data: `enc-${number}`, id: "r1" }),
      ],
    }),
    deltas: ({ thoughts }, number) => [
      ...thoughts.map((said) => ({
        reasoning: said,
        reasoning_details: [detail("reasoning.text", 0, { text: said })],
      })),
      { reasoning_details: [detail("reasoning.text", 0, { signature: `sig-${number}+/=` })] },
      { reasoning_details: [detail("reasoning.encrypted", 1, { data: `enc-${number}`, id: "r1" })] },
    ],
    fields: ["reasoning", "reasoning_details"],
  },
  "LiteLLM's, with Anthropic's signed blocks": {
    message: (step, number) => ({ reasoning_content: whole(step), thinking_blocks: litellmBlocks(step, number) }),
    deltas: ({ thoughts }, number) => [
      ...thoughts.map((said) => ({
        reasoning_content: said,
        thinking_blocks: [{ type: "thinking", thinking: said, signature: null }],
      })),
      { reasoning_content: "", thinking_blocks: [{ type: "thinking", thinking: "", signature: `sig-${number}+/=` }] },
      { thinking_blocks: [{ type: "redacted_thinking", data: `enc-${number}` }] },
    ],
    fields: ["reasoning_content", "thinking_blocks"],
  },
  "OpenRouter's, encrypted alone": {
    message: (_step, number) => ({ reasoning_details: [detail("reasoning.encrypted", 0, { data: `enc-${number}` })] }),
    deltas: (_step, number) => [{ reasoning_details: [detail("reasoning.encrypted", 0, { data: `enc-${number}` })] }],
    fields: ["reasoning_details"],
  },
  "GitHub Copilot's, with an opaque rest": {
    message: (step, number) => ({ reasoning_text: whole(step), reasoning_opaque: `opaque-${number}` }),
    deltas: ({ thoughts }, number) => [
      ...thoughts.map((said) => ({ reasoning_text: said })),
      { reasoning_opaque: `opaque-${number}` },
    ],
    fields: ["reasoning_text", "reasoning_opaque"],
  },
  "an object by the name of reasoning": {
    message: (step, number) => ({ reasoning: { id: `r-${number}`, content: whole(step), signature: "s+/=" } }),
    deltas: (step, number) => [{ reasoning: { id: `r-${number}`, content: whole(step), signature: "s+/=" } }],
    fields: ["reasoning"],
  },
  "a text by the name of thinking": named("thinking"),
  "Gemini's, with signed calls": {
    message: () => ({}),
    deltas: () => [],
    // Of parallel calls the first is signed.
    beside: (_step, at, number) =>
      at === 0 ? { extra_content: { google: { thought_signature: `thought-${number}+/==` } } } : {},
    fields: [],
  },
  "Mistral's, as a part of the content": {
    message: (step) => ({ content: parts(whole(step), step.text) }),
    deltas: ({ thoughts }) => thoughts.map((said) => ({ content: parts(said, "") })),
    fields: ["content"],
  },
  "GLM's, with reasoning_content and signed calls": {
    ...named("reasoning_content"),
    beside: (_step, at, number) => ({ extra_content: { google: { thought_signature: `t-${number}-${at}` } } }),
  },
};

export function messageOf(engine: ReasoningEngine, step: Step, number: string): Json {
  const calls = step.calls.map(({ id, name, json }, at) => ({
    id,
    type: "function",
    function: { name, arguments: json },
    ...engine.beside?.(step, at, number),
  }));
  return {
    role: "assistant",
    content: step.text === "" ? null : step.text,
    ...engine.message(step, number),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

/** Which step of which question a chat asks for: by its user's messages, and the results behind the last one. */
function askedStep(messages: readonly Json[]): { readonly question: number; readonly step: number } {
  const users = messages.filter(({ role }) => role === "user").length;
  const behind = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  return { question: users - 1, step: behind.filter(({ role }) => role === "assistant").length };
}

/**
 * Answers a chat as its engine does: with 400 where a message of the running turn that calls tools lacks what was given with it, as DeepSeek
 * and Gemini answer; else with the next step.
 */
export function answerChat(engine: ReasoningEngine, body: Json, response: ServerResponse): void {
  const messages = body["messages"] as readonly Json[];
  const { question, step } = askedStep(messages);
  const running = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  for (const [at, message] of running.filter(({ role }) => role === "assistant").entries()) {
    const given = messageOf(engine, STEPS[question]?.[at] as Step, `${question}.${at}`);
    const lacking = lackOf(engine, message, given);
    if (lacking !== null) {
      sendJson(response, 400, { error: { message: lacking, type: "invalid_request_error" } });
      return;
    }
  }
  const said = STEPS[question]?.[step] as Step;
  const number = `${question}.${step}`;
  const finish_reason = said.calls.length > 0 ? "tool_calls" : "stop";
  const usage = { prompt_tokens: 50, completion_tokens: 5, total_tokens: 55 };
  const about = { id: `chat-${number}`, created: 1_700_000_000, model: "stub-1" };
  if (body["stream"] !== true) {
    const choices = [{ index: 0, message: messageOf(engine, said, number), finish_reason }];
    sendJson(response, 200, { ...about, object: "chat.completion", choices, usage });
    return;
  }
  const chunk = (delta: Json, finish: string | null = null) => ({
    ...about,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  sendEvents(response, [
    chunk({ role: "assistant", content: "" }),
    ...engine.deltas(said, number).map((delta) => chunk(delta)),
    ...(said.text === "" ? [] : [chunk({ content: said.text.slice(0, 3) }), chunk({ content: said.text.slice(3) })]),
    ...said.calls.flatMap(({ id, name, json }, index) => {
      const beside = engine.beside?.(said, index, number);
      return [
        chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" }, ...beside }] }),
        chunk({ tool_calls: [{ index, function: { arguments: json.slice(0, 9) } }] }),
        chunk({ tool_calls: [{ index, function: { arguments: json.slice(9) } }] }),
      ];
    }),
    chunk({}, finish_reason),
    { ...about, object: "chat.completion.chunk", choices: [], usage },
  ]);
}

/** What a returned message lacks of what its engine gave; null: nothing. */
export function lackOf({ fields }: ReasoningEngine, returned: Json, given: Json): string | null {
  for (const field of fields)
    if (!isDeepStrictEqual(returned[field], given[field]))
      return `The \`${field}\` in the thinking mode must be passed back: ${JSON.stringify(returned)}`;
  const calls = (given["tool_calls"] ?? []) as readonly Json[];
  const again = (returned["tool_calls"] ?? []) as readonly Json[];
  for (const { id, extra_content: extra } of calls) {
    const own = again.find((other) => other["id"] === id);
    if (!isDeepStrictEqual(own?.["extra_content"], extra))
      return `Function call is missing a thought_signature: ${JSON.stringify(own)}`;
  }
  return null;
}
