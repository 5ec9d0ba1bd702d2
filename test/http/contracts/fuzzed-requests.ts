import fc from "fast-check";
import { ENGINE_NAMES } from "../../../src/engines/adapters/engine-adapter.js";
import { hostileText } from "../../core/escaping/hostile-text.js";
import { TEMPLATE_TOKENS } from "../../core/escaping/template-tokens.js";

/** One request as it goes over the socket. */
export interface FuzzedRequest {
  readonly method: string;
  readonly path: string;
  /** Null: none. */
  readonly body: string | Uint8Array | null;
  readonly type: string;
}

/** One of these, but for once in a while. */
function mostly<T, U>(usual: fc.Arbitrary<T>, unusual: fc.Arbitrary<U>): fc.Arbitrary<T | U> {
  return fc.oneof({ weight: 24, arbitrary: usual }, { weight: 1, arbitrary: unusual });
}

/** Objects with these fields; those that end with `?` may be missing. */
function objects(fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<object> {
  const named = Object.entries(fields).map(([name, value]) => [name.replace(/\?$/, ""), value] as const);
  const requiredKeys = Object.keys(fields).filter((name) => !name.endsWith("?"));
  return fc.record(Object.fromEntries(named), { requiredKeys });
}

const oneOf = (...values: readonly string[]) => mostly(fc.constantFrom(...values), text);
const listOf = (item: fc.Arbitrary<unknown>, maxLength = 4) => fc.array(item, { maxLength });

/** Special tokens of public models, as they are and with something that nobody sees between. */
const markers = fc
  .array(
    fc.tuple(
      fc.constantFrom(...Object.values(TEMPLATE_TOKENS).flat()),
      fc.constantFrom("", "", "\u200b", "\u00ad", "\\"),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((tokens) => tokens.map(([token, between]) => token.slice(0, 1) + between + token.slice(1)).join(" tea "));
/** What a text of many characters is made of, so that reading it may take the square of its length. */
const REPEATED = [
  ...["<memories>\n", "<memories>\n[1] ", "tea <memories>\n", "[1]", "[1] a\n", "  a\n", "<", "<[", "[A", "<\u200b"],
  ...["/think", "a", " ", "\n", "\r\n", "\t", "1", "!", "茶", "\u0301", "👩‍👩‍👧‍👦", "\\", '\\"', '"', "ａ", "\u2028"],
  "[Doc_1][Doc_1]",
];
const huge = fc
  .tuple(fc.constantFrom(...REPEATED), fc.integer({ min: 5_000, max: 200_000 }))
  .map(([piece, length]) => piece.repeat(Math.ceil(length / piece.length)).slice(0, length));
const storable = hostileText.map((written) => `${written.replace(/[\0\p{Surrogate}]/gu, "")}tea`);
const text = mostly(
  fc.oneof(
    { weight: 4, arbitrary: storable },
    { weight: 2, arbitrary: markers },
    fc.constantFrom("Where?", "x".repeat(300), "😀".repeat(50)),
  ),
  fc.oneof(hostileText, fc.constantFrom("", " ")),
);
/** A text of a message or a memory; now and then a very long one. */
const written = fc.oneof({ weight: 80, arbitrary: text }, { weight: 1, arbitrary: huge });
/** Few names, so that requests meet what others left. */
const name = oneOf("ada", "bo", "c", "1", "m-1", "m-2", "r-1", "r-2");
const oddNumber = fc.oneof(
  fc.constantFrom(0, -1, 1.5, 1e9, 2 ** 53, -(2 ** 53), 1e308, Number.MIN_VALUE),
  fc.integer(),
);
const count = mostly(fc.integer({ min: 1, max: 300 }), oddNumber);
const anything = fc.jsonValue({ maxDepth: 4 });
const flag = mostly(fc.boolean(), anything);
const said = mostly(written, anything);
const others = fc.dictionary(name, anything);

const role = oneOf("user", "assistant", "system", "tool", "developer");
const parts = (type: string) => listOf(mostly(objects({ type: fc.constant(type), text: written }), others), 3);
const message = objects({
  role,
  content: mostly(written, fc.oneof(parts("text"), fc.constant(null))),
  "name?": text,
  "tool_calls?": anything,
  "tool_call_id?": name,
});
const history = fc
  .tuple(listOf(message), said)
  .map(([before, question]) => [...before, { role: "user", content: question }]);
const memory = objects({
  id: mostly(name, oddNumber),
  memory: written,
  "score?": oddNumber,
  "metadata?": anything,
});
const memories = fc.oneof(listOf(memory, 6), objects({ results: listOf(memory, 6), "relations?": anything }));
const policy = oneOf("retrieval", "sorted", "context-pilot", "knowledge-tree", "prefix-exact", "carry-over");
const retention = oneOf("keep", "volatile", "ephemeral", "auto");
const engine = oneOf(...ENGINE_NAMES);

/** Fields of single prompts and of a batch's. */
const PROMPT = {
  user_id: name,
  "agent_id?": fc.option(name),
  "conversation_id?": fc.option(name),
  "request_id?": fc.option(name),
  "query?": fc.option(text),
  messages: mostly(history, listOf(message, 3)),
  memories,
  "system?": fc.option(text),
  "top_k?": fc.option(count),
  "memory_budget_tokens?": fc.option(count),
  "memory_budget_ratio?": fc.option(mostly(fc.double({ min: 1, max: 100, noNaN: true }), count)),
  "policy?": policy,
  "retention?": retention,
  "annotations?": mostly(fc.constantFrom(true, false, "paper"), anything),
  "engine?": engine,
};
const workers = fc.option(mostly(fc.uniqueArray(name, { minLength: 1, maxLength: 3 }), anything));
const prompt = objects({ ...PROMPT, "workers?": workers, "dry_run?": mostly(fc.constant(false), anything) });

/** `memprefix` in bodies of the proxy. */
const settings = objects({
  "user_id?": name,
  conversation_id: fc.option(name),
  "policy?": policy,
  "memories?": memories,
  "retention?": retention,
  "engine?": engine,
  "write_back?": fc.boolean(),
});
/** Fields of all three APIs. */
const CALL = { "model?": text, "stream?": flag, "tools?": anything, "tool_choice?": anything, "memprefix?": settings };
const chat = objects({ messages: mostly(history, anything), user: name, ...CALL });
/** Items of the Responses API, of all kinds that are read, and others. */
const item = fc.oneof(
  objects({ "type?": oneOf("message"), role, content: mostly(written, parts("input_text")), "id?": name }),
  objects({ type: fc.constant("function_call"), call_id: name, name, arguments: mostly(fc.json(), text) }),
  objects({
    type: oneOf("function_call_output", "custom_tool_call_output", "computer_call_output"),
    call_id: name,
    output: said,
  }),
  objects({ type: fc.constant("reasoning"), id: name, summary: anything, encrypted_content: text }),
  objects({ type: fc.constant("item_reference"), id: name }),
  others,
);
const response = objects({
  input: mostly(fc.oneof(written, listOf(item, 5)), anything),
  "instructions?": fc.option(written),
  // Few, so that some are those that the engine gave.
  "previous_response_id?": fc.option(oneOf("resp_1", "resp_2")),
  "conversation?": fc.option(mostly(fc.constantFrom("conv_1", "conv_2"), anything)),
  "store?": flag,
  user: name,
  "text?": anything,
  ...CALL,
});
const block = fc.oneof(
  objects({
    type: fc.constant("text"),
    text: written,
    "cache_control?": mostly(fc.constant({ type: "ephemeral" }), anything),
  }),
  objects({ type: fc.constant("tool_use"), id: name, name, input: anything }),
  objects({ type: fc.constant("tool_result"), tool_use_id: name, content: said }),
  objects({
    type: fc.constantFrom("thinking", "image", "document", "search_result"),
    source: anything,
    thinking: text,
  }),
  others,
);
const blocks = mostly(fc.oneof(written, listOf(block)), anything);
const claude = objects({
  messages: mostly(
    fc
      .tuple(listOf(objects({ role: oneOf("user", "assistant", "system"), content: blocks })), blocks)
      .map(([before, content]) => [...before, { role: "user", content }]),
    anything,
  ),
  "system?": mostly(fc.oneof(written, listOf(block, 2)), anything),
  metadata: mostly(objects({ "user_id?": name }), anything),
  max_tokens: count,
  "output_config?": anything,
  "thread?": mostly(fc.constantFrom({ type: "create" }, { type: "continue", previous_message_id: "msg_1" }), anything),
  ...CALL,
});
const feedback = objects({
  user_id: name,
  "agent_id?": fc.option(name),
  request_id: name,
  "prompt_tokens?": count,
  "cached_tokens?": count,
  "ttft_ms?": count,
});
/** What opens the webhook of a service that is fuzzed. */
export const WEBHOOK_TOKEN = "a-token-to-be-fuzzed-with";
const mem0Event = objects({
  id: name,
  event: oneOf("UPDATE", "DELETE", "ADD"),
  "data?": objects({ memory: text }),
});

/** Bodies of the right shape, by how often they are sent. */
const DOORS: readonly (readonly [weight: number, path: string, body: fc.Arbitrary<object>])[] = [
  [8, "/compose", prompt],
  [1, "/compose/batch", objects({ requests: listOf(objects(PROMPT)), "workers?": workers })],
  [2, "/feedback", feedback],
  [1, "/evict", objects({ request_ids: listOf(name) })],
  [1, "/memories", objects({ user_id: name, memories: listOf(text, 3) })],
  [1, `/webhooks/mem0?token=${WEBHOOK_TOKEN}`, objects({ event_details: mem0Event })],
  [8, "/v1/chat/completions", chat],
  [6, "/v1/responses", response],
  [6, "/v1/messages", claude],
  [1, "/v1/messages/count_tokens", claude],
];
const door = fc.oneof(
  ...DOORS.map(([weight, path, body]) => ({ weight, arbitrary: fc.tuple(fc.constant(path), body) })),
);

const JSON_TYPE = "application/json";
const posted = (path: string, body: string | Uint8Array, type = JSON_TYPE): FuzzedRequest => ({
  method: "POST",
  path,
  body,
  type,
});
/** A body of the right shape; or with one field that is anything; or with one more. */
const sent = fc
  .tuple(door, fc.integer({ min: 0, max: 16 }), fc.nat(), name, anything)
  .map(([of, how, at, extra, bad]) => {
    const [path, good] = of;
    const names = Object.keys(good);
    const body =
      how < 12
        ? good
        : how < 15
          ? { ...good, [names[at % names.length] ?? "user_id"]: bad }
          : how === 15
            ? { ...good, [extra]: bad }
            : bad;
    return posted(path, JSON.stringify(body));
  });
/** A right body in one of whose fields something is nested so deep that who reads it by recursion does not come back. */
const deep = fc
  .tuple(door, fc.nat(), fc.constantFrom("[", '{"a":'), fc.constantFrom(90, 120, 5_000, 50_000))
  .map(([[path, body], at, open, levels]) => {
    const names = [...Object.keys(body), "metadata"];
    const close = open === "[" ? "]" : "}";
    const json = JSON.stringify({ ...body, [names[at % names.length] ?? ""]: "@deep@" });
    return posted(path, json.replace('"@deep@"', open.repeat(levels) + 1 + close.repeat(levels)));
  });
/** A right body in another encoding than UTF-8. */
const encoded = fc
  .tuple(
    door,
    fc.constantFrom<BufferEncoding>("utf16le", "latin1"),
    fc.constantFrom(JSON_TYPE, "application/json; charset=utf-16", "application/json; charset=latin1"),
  )
  .map(([[path, body], encoding, type]) => posted(path, Buffer.from(JSON.stringify(body), encoding), type));
/** Text that is almost a body, bytes that are no text, and what says that it is something else. */
const broken = fc
  .tuple(
    door,
    fc.nat(),
    fc.oneof(
      fc.constant(null),
      fc.uint8Array({ maxLength: 200 }),
      fc.constantFrom(
        "[".repeat(20_000),
        '{"a":'.repeat(20_000),
        "null",
        "",
        "\ufeff{}",
        '{"user_id":"a","user_id":"b"}',
      ),
    ),
    fc.constantFrom(JSON_TYPE, "text/plain", "application/json; charset=utf-16", ""),
  )
  .map(([[path, body], at, other, type]) => {
    const json = JSON.stringify(body);
    return posted(path, other ?? json.slice(0, at % json.length), type);
  });
const segment = name.map((part) => encodeURIComponent(part.replace(/\p{Surrogate}/gu, "")) || "%20");
const looked = fc
  .tuple(
    fc.constantFrom("GET", "DELETE", "PUT"),
    fc.oneof(
      segment.map((user) => `/users/${user}/export`),
      fc.tuple(segment, segment).map(([id, user]) => `/requests/${id}/explain?user_id=${user}`),
      segment.map((user) => `/users/${user}`),
      fc.tuple(segment, segment).map(([user, id]) => `/users/${user}/memories/${id}`),
      fc.constantFrom(
        ...["/", "/healthz", "/livez", "/metrics", "/openapi.json", "/v1/models", "/users//export", "/%00"],
        "/users/%ff/export",
      ),
    ),
  )
  .map(([method, path]): FuzzedRequest => ({ method, path, body: null, type: "" }));

/** Any request to the HTTP surface: some right, most a little wrong, some nonsense. */
export const fuzzedRequest: fc.Arbitrary<FuzzedRequest> = fc.oneof(
  { weight: 35, arbitrary: sent },
  { weight: 1, arbitrary: deep },
  { weight: 1, arbitrary: encoded },
  { weight: 2, arbitrary: broken },
  { weight: 2, arbitrary: looked },
);
