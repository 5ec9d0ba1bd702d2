import fc from "fast-check";
import {
  anything,
  count,
  engineName,
  history,
  memories,
  mostly,
  name,
  policy,
  retention,
  role,
  text,
  written,
} from "./fuzzed-values.js";

/* Bodies for the routes of the proxy, as OpenAI's and Anthropic's APIs have them, each a little wrong now and then. */

const settings = fc.record(
  {
    user_id: name,
    conversation_id: fc.option(name),
    policy,
    memories,
    retention,
    engine: engineName,
    write_back: fc.boolean(),
  },
  { requiredKeys: ["conversation_id"] },
);
export const chat = fc.record(
  {
    messages: mostly(history, anything),
    user: name,
    model: text,
    stream: mostly(fc.boolean(), anything),
    tools: anything,
    memprefix: settings,
  },
  { requiredKeys: ["messages", "user"] },
);

const textParts = (type: string) =>
  fc.array(mostly(fc.record({ type: fc.constant(type), text: written }), fc.dictionary(name, anything)), {
    maxLength: 3,
  });
/** Items of the Responses API, of all kinds that are read, and others. */
const item = fc.oneof(
  fc.record(
    { type: mostly(fc.constant("message"), text), role, content: mostly(written, textParts("input_text")), id: name },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record({ type: fc.constant("function_call"), call_id: name, name, arguments: mostly(fc.json(), text) }),
  fc.record({
    type: mostly(fc.constantFrom("function_call_output", "custom_tool_call_output", "computer_call_output"), text),
    call_id: name,
    output: mostly(written, anything),
  }),
  fc.record({ type: fc.constant("reasoning"), id: name, summary: anything, encrypted_content: text }),
  fc.record({ type: fc.constant("item_reference"), id: name }),
  fc.dictionary(name, anything),
);
export const response = fc.record(
  {
    input: mostly(fc.oneof(written, fc.array(item, { maxLength: 5 })), anything),
    instructions: fc.option(written),
    // Few, so that some are those that the engine gave.
    previous_response_id: fc.option(mostly(fc.constantFrom("resp_1", "resp_2"), text)),
    conversation: fc.option(mostly(fc.constantFrom("conv_1", "conv_2"), anything)),
    store: mostly(fc.boolean(), anything),
    user: name,
    model: text,
    stream: mostly(fc.boolean(), anything),
    tools: anything,
    tool_choice: anything,
    text: anything,
    memprefix: settings,
  },
  { requiredKeys: ["input", "user"] },
);
const block = fc.oneof(
  fc.record(
    { type: fc.constant("text"), text: written, cache_control: mostly(fc.constant({ type: "ephemeral" }), anything) },
    { requiredKeys: ["type", "text"] },
  ),
  fc.record({ type: fc.constant("tool_use"), id: name, name, input: anything }),
  fc.record({ type: fc.constant("tool_result"), tool_use_id: name, content: mostly(written, anything) }),
  fc.record({
    type: fc.constantFrom("thinking", "image", "document", "search_result"),
    source: anything,
    thinking: text,
  }),
  fc.dictionary(name, anything),
);
const contentOf = mostly(fc.oneof(written, fc.array(block, { maxLength: 4 })), anything);
const claudeMessages = fc
  .tuple(
    fc.array(fc.record({ role: mostly(fc.constantFrom("user", "assistant", "system"), text), content: contentOf }), {
      maxLength: 4,
    }),
    contentOf,
  )
  .map(([before, content]) => [...before, { role: "user", content }]);
export const claude = fc.record(
  {
    messages: mostly(claudeMessages, anything),
    system: mostly(fc.oneof(written, fc.array(block, { maxLength: 2 })), anything),
    metadata: mostly(fc.record({ user_id: name }), anything),
    max_tokens: count,
    model: text,
    stream: mostly(fc.boolean(), anything),
    tools: anything,
    tool_choice: anything,
    output_config: anything,
    thread: mostly(fc.constantFrom({ type: "create" }, { type: "continue", previous_message_id: "msg_1" }), anything),
    memprefix: settings,
  },
  { requiredKeys: ["messages", "metadata", "max_tokens"] },
);
