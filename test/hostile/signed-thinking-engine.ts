import type { ServerResponse } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { type AnthropicCall, sendAnthropic, streamAnthropic } from "../http/routes/anthropic-server.js";
import type { Json } from "./reasoning-engines.js";

const use = (id: string, city: string) => ({ type: "tool_use", id, name: "weather", input: { city } });
const thinking = (said: string, signature: string) => ({ type: "thinking", thinking: said, signature });

/** What the model answers, question by question; thinking stands between its words and its calls, too. */
const CONTENTS: readonly (readonly (readonly Json[])[])[] = [
  [
    [
      thinking(" Two cities,\nat once. ", "Eq+/A=="),
      { type: "redacted_thinking", data: "Em+/wD==" },
      { type: "text", text: "I look." },
      use("toolu_1", "Faro"),
      use("toolu_2", "Porto"),
    ],
    [
      thinking("One is ", "EqB="),
      { type: "text", text: "One " },
      thinking("left.", "EqC="),
      { type: "text", text: "is left." },
      use("toolu_3", "Évora"),
    ],
    [thinking("All known.", "EqD="), { type: "text", text: "Go to Faro." }],
  ],
  [[thinking("Easy.", "EqE="), { type: "text", text: "Yes." }]],
];
/** The same by a model of another maker, which signs nothing. */
const UNSIGNED = CONTENTS.map((answers) =>
  answers.map((content) =>
    content
      .filter(({ type }) => type !== "redacted_thinking")
      .map((block) => (block["type"] === "thinking" ? { ...block, signature: "" } : block)),
  ),
);
type Contents = typeof CONTENTS;

/**
 * Answers a message as Anthropic's API does: with 400 for thinking that it did not sign, and in the thinking mode where an answer of the
 * running loop of tools is not as it was given, its thinking first.
 * Source: https://platform.claude.com/docs/en/build-with-claude/extended-thinking, "Preserving thinking blocks"
 */
export const answerMessage = (response: ServerResponse, call: AnthropicCall) => answerWith(CONTENTS, response, call);
/** The same as llama.cpp and others that speak the API answer. */
export const answerUnsigned = (response: ServerResponse, call: AnthropicCall) => answerWith(UNSIGNED, response, call);

function answerWith(contents: Contents, response: ServerResponse, { body }: AnthropicCall): void {
  const messages = body.messages as unknown as readonly Json[];
  const asked = messages.findLastIndex((message) => message["role"] === "user" && !isOfResults(message));
  const running = messages.slice(asked + 1).filter(({ role }) => role === "assistant");
  const question = messages.filter((message) => message["role"] === "user" && !isOfResults(message)).length - 1;
  const refused = refusal(contents, messages, running, question, body);
  if (refused !== null) {
    const error = { type: "invalid_request_error", message: refused };
    sendAnthropic(response, 400, { type: "error", error });
    return;
  }
  const content = contents[question]?.[running.length] ?? [];
  const stop_reason = content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn";
  const usage = { input_tokens: 50, output_tokens: 5, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 };
  const message = { id: `msg_${question}_${running.length}`, type: "message", role: "assistant", model: "claude-x" };
  if (body["stream"] !== true) {
    sendAnthropic(response, 200, { ...message, content, stop_reason, stop_sequence: null, usage });
    return;
  }
  streamAnthropic(response, [
    { type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence: null, usage } },
    ...content.flatMap(blockEvents),
    { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage },
    { type: "message_stop" },
  ]);
}

function refusal(
  contents: Contents,
  messages: readonly Json[],
  running: readonly Json[],
  question: number,
  { thinking: mode }: Json,
): string | null {
  const own = contents.flat(2);
  for (const block of messages.flatMap(blocksOf)) {
    const isThinking = block["type"] === "thinking" || block["type"] === "redacted_thinking";
    if (isThinking && !own.some((given) => isDeepStrictEqual(given, block)))
      return `Invalid \`signature\` in \`thinking\` block: ${JSON.stringify(block)}`;
  }
  if ((mode as Json | undefined)?.["type"] === "disabled") return null;
  const changed = running.findIndex((message, at) => {
    const given = contents[question]?.[at] ?? [];
    return !isDeepStrictEqual(blocksOf(message), given);
  });
  return changed === -1
    ? null
    : `Expected \`thinking\`, or blocks in the latest assistant message were modified: ${JSON.stringify(running[changed])}`;
}

function isOfResults(message: Json): boolean {
  return blocksOf(message).some(({ type }) => type === "tool_result");
}

/** Without marks, which may stand on any block but thinking. */
function blocksOf({ content }: Json): readonly Json[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return (content as readonly Json[]).map(({ cache_control: _mark, ...block }) => block);
}

function blockEvents(block: Json, index: number): readonly object[] {
  const delta = (given: object) => ({ type: "content_block_delta", index, delta: given });
  const halves = (said: unknown) => [String(said).slice(0, 4), String(said).slice(4)];
  const start = (content_block: object) => ({ type: "content_block_start", index, content_block });
  const stop = { type: "content_block_stop", index };
  switch (block["type"]) {
    case "thinking":
      return [
        start({ ...block, thinking: "", signature: "" }),
        ...halves(block["thinking"]).map((said) => delta({ type: "thinking_delta", thinking: said })),
        delta({ type: "signature_delta", signature: block["signature"] }),
        stop,
      ];
    case "text":
      return [
        start({ ...block, text: "" }),
        ...halves(block["text"]).map((text) => delta({ type: "text_delta", text })),
        stop,
      ];
    case "tool_use":
      return [
        start({ ...block, input: {} }),
        ...halves(JSON.stringify(block["input"])).map((json) =>
          delta({ type: "input_json_delta", partial_json: json }),
        ),
        stop,
      ];
    default:
      return [start(block), stop];
  }
}
