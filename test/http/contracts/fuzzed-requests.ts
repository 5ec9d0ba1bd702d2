import fc from "fast-check";
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
  ...[
    "<memories>\n",
    "<memories>\n[1] ",
    "tea <memories>\n",
    "[1]",
    "[1] a\n",
    "  a\n",
    "<",
    "<[",
    "[A",
    "<\u200b",
    "/think",
  ],
  ...[
    "a",
    " ",
    "\n",
    "\r\n",
    "\t",
    "1",
    "!",
    "茶",
    "\u0301",
    "👩‍👩‍👧‍👦",
    "\\",
    '\\"',
    '"',
    "ａ",
    "\u2028",
    "(replaces [1][1]",
  ],
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
const name = mostly(fc.constantFrom("ada", "bo", "c", "1", "m-1", "m-2", "r-1", "r-2"), text);
const oddNumber = fc.oneof(
  fc.constantFrom(0, -1, 1.5, 1e9, 2 ** 53, -(2 ** 53), 1e308, Number.MIN_VALUE),
  fc.integer(),
);
const count = mostly(fc.integer({ min: 1, max: 300 }), oddNumber);
const anything = fc.jsonValue({ maxDepth: 4 });
const role = mostly(fc.constantFrom("user", "assistant", "system", "tool", "developer"), text);
const parts = fc.array(mostly(fc.record({ type: fc.constant("text"), text: written }), fc.dictionary(name, anything)), {
  maxLength: 3,
});
const message = fc.record(
  {
    role,
    content: mostly(written, fc.oneof(parts, fc.constant(null))),
    name: text,
    tool_calls: anything,
    tool_call_id: name,
  },
  { requiredKeys: ["role", "content"] },
);
const history = fc
  .tuple(fc.array(message, { maxLength: 4 }), mostly(written, anything))
  .map(([before, question]) => [...before, { role: "user", content: question }]);
const memory = fc.record(
  { id: mostly(name, oddNumber), memory: written, score: oddNumber, metadata: anything },
  { requiredKeys: ["id", "memory"] },
);
const memories = fc.oneof(
  fc.array(memory, { maxLength: 6 }),
  fc.record({ results: fc.array(memory, { maxLength: 6 }), relations: anything }, { requiredKeys: ["results"] }),
);
const composeFields = {
  user_id: name,
  agent_id: fc.option(name),
  conversation_id: fc.option(name),
  request_id: fc.option(name),
  query: fc.option(text),
  messages: mostly(history, fc.array(message, { maxLength: 3 })),
  memories,
  system: fc.option(text),
  top_k: fc.option(count),
  memory_budget_tokens: fc.option(count),
  memory_budget_ratio: fc.option(mostly(fc.double({ min: 1, max: 100, noNaN: true }), count)),
  policy: mostly(
    fc.constantFrom("retrieval", "sorted", "context-pilot", "knowledge-tree", "prefix-exact", "carry-over"),
    text,
  ),
  retention: mostly(fc.constantFrom("keep", "volatile", "ephemeral", "auto"), text),
  annotations: mostly(
    fc.oneof(fc.boolean(), fc.record({ order: fc.boolean(), top_n: fc.integer({ min: 1, max: 9 }) })),
    anything,
  ),
  engine: mostly(
    fc.constantFrom("vllm", "sglang", "openai", "openai-breakpoints", "anthropic", "llamacpp", "generic"),
    text,
  ),
  prompt: mostly(fc.boolean(), anything),
};
const composed = fc.record(composeFields, { requiredKeys: ["user_id", "messages", "memories"] });
/** With the fields that single prompts have and a batch has for all. */
const composedAlone = fc.record(
  {
    ...composeFields,
    workers: fc.option(mostly(fc.uniqueArray(name, { minLength: 1, maxLength: 3 }), anything)),
    schedule_ms: fc.option(count),
  },
  { requiredKeys: ["user_id", "messages", "memories"] },
);
const feedback = fc.record(
  {
    user_id: name,
    agent_id: fc.option(name),
    request_id: name,
    prompt_tokens: count,
    cached_tokens: count,
    ttft_ms: count,
  },
  { requiredKeys: ["user_id", "request_id"] },
);
/** What opens the webhook of a service that is fuzzed. */
export const WEBHOOK_TOKEN = "a-token-to-be-fuzzed-with";
const mem0Event = fc.record(
  { id: name, event: mostly(fc.constantFrom("UPDATE", "DELETE", "ADD"), text), data: fc.record({ memory: text }) },
  { requiredKeys: ["id", "event"] },
);
const chat = fc.record(
  {
    messages: mostly(history, anything),
    user: name,
    model: text,
    stream: mostly(fc.boolean(), anything),
    tools: anything,
    memstem: fc.record(
      {
        user_id: name,
        conversation_id: fc.option(name),
        policy: composeFields.policy,
        memories,
        retention: composeFields.retention,
        engine: composeFields.engine,
        write_back: fc.boolean(),
      },
      { requiredKeys: ["conversation_id"] },
    ),
  },
  { requiredKeys: ["messages", "user"] },
);

/** A body of the right shape; or with one field that is anything; or with one more. */
function spoiled(body: fc.Arbitrary<object>): fc.Arbitrary<unknown> {
  const changed = fc.tuple(body, fc.nat(), anything).map(([good, at, bad]) => {
    const names = Object.keys(good);
    return { ...good, [names[at % names.length] ?? "user_id"]: bad };
  });
  const more = fc.tuple(body, name, anything).map(([good, extra, value]) => ({ ...good, [extra]: value }));
  return fc.oneof({ weight: 12, arbitrary: body }, { weight: 3, arbitrary: changed }, more, anything);
}

const JSON_TYPE = "application/json";
const posted = (path: string, body: fc.Arbitrary<object>): fc.Arbitrary<FuzzedRequest> =>
  spoiled(body).map((value) => ({ method: "POST", path, body: JSON.stringify(value), type: JSON_TYPE }));
/** A right body in one of whose fields something is nested so deep that who reads it by recursion does not come back. */
const deep: fc.Arbitrary<FuzzedRequest> = fc
  .tuple(
    fc.oneof(
      fc.tuple(fc.constant("/compose"), composed),
      fc.tuple(fc.constant("/v1/chat/completions"), chat),
      fc.tuple(fc.constant("/feedback"), feedback),
    ),
    fc.nat(),
    fc.constantFrom("[", '{"a":'),
    fc.constantFrom(90, 120, 5_000, 50_000),
  )
  .map(([[path, body], at, open, levels]) => {
    const names = [...Object.keys(body), "metadata"];
    const close = open === "[" ? "]" : "}";
    const json = JSON.stringify({ ...body, [names[at % names.length] ?? ""]: "@deep@" });
    return {
      method: "POST",
      path,
      body: json.replace('"@deep@"', open.repeat(levels) + 1 + close.repeat(levels)),
      type: JSON_TYPE,
    };
  });
/** A right body in another encoding than UTF-8. */
const encoded: fc.Arbitrary<FuzzedRequest> = fc
  .tuple(
    fc.oneof(fc.tuple(fc.constant("/compose"), composed), fc.tuple(fc.constant("/v1/chat/completions"), chat)),
    fc.constantFrom<BufferEncoding>("utf16le", "latin1", "base64"),
    fc.constantFrom(JSON_TYPE, "application/json; charset=utf-16", "application/json; charset=latin1"),
  )
  .map(([[path, body], encoding, type]) => ({
    method: "POST",
    path,
    body:
      encoding === "base64"
        ? Buffer.from(JSON.stringify(body)).toString("base64")
        : Buffer.from(JSON.stringify(body), encoding),
    type,
  }));
/** Text that is almost a body, bytes that are no text, and what says that it is something else. */
const broken: fc.Arbitrary<FuzzedRequest> = fc
  .tuple(
    fc.constantFrom("/compose", "/compose/batch", "/feedback", "/evict", "/memories", "/v1/chat/completions"),
    fc.oneof(
      fc.tuple(composed, fc.nat()).map(([body, at]) => {
        const json = JSON.stringify(body);
        return json.slice(0, at % json.length);
      }),
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
    fc.constantFrom(JSON_TYPE, "application/x-ndjson", "text/plain", "application/json; charset=utf-16", ""),
  )
  .map(([path, body, type]) => ({ method: "POST", path, body, type }));
const lines: fc.Arbitrary<FuzzedRequest> = fc
  .array(
    fc.oneof(
      spoiled(composed).map((value) => JSON.stringify(value)),
      text,
    ),
    { maxLength: 6 },
  )
  .map((all) => ({ method: "POST", path: "/compose/batch", body: all.join("\n"), type: "application/x-ndjson" }));
const segment = name.map((part) => encodeURIComponent(part.replace(/\p{Surrogate}/gu, "")) || "%20");
const looked: fc.Arbitrary<FuzzedRequest> = fc
  .tuple(
    fc.constantFrom("GET", "DELETE", "PUT"),
    fc.oneof(
      segment.map((user) => `/users/${user}/index`),
      segment.map((user) => `/users/${user}/export`),
      fc.tuple(segment, segment).map(([id, user]) => `/requests/${id}/explain?user_id=${user}`),
      segment.map((user) => `/users/${user}`),
      fc.tuple(segment, segment).map(([user, id]) => `/users/${user}/memories/${id}`),
      fc.constantFrom(
        "/",
        "/healthz",
        "/metrics",
        "/openapi.json",
        "/v1/models",
        "/users//index",
        "/%00",
        "/users/%ff/index",
      ),
    ),
  )
  .map(([method, path]) => ({ method, path, body: null, type: "" }));

/** Any request to the HTTP surface: some right, most a little wrong, some nonsense. */
export const fuzzedRequest: fc.Arbitrary<FuzzedRequest> = fc.oneof(
  { weight: 8, arbitrary: posted("/compose", composedAlone) },
  { weight: 2, arbitrary: posted("/feedback", feedback) },
  { weight: 1, arbitrary: posted("/evict", fc.record({ request_ids: fc.array(name, { maxLength: 4 }) })) },
  {
    weight: 1,
    arbitrary: posted("/memories", fc.record({ user_id: name, memories: fc.array(text, { maxLength: 3 }) })),
  },
  { weight: 1, arbitrary: posted(`/webhooks/mem0?token=${WEBHOOK_TOKEN}`, fc.record({ event_details: mem0Event })) },
  { weight: 8, arbitrary: posted("/v1/chat/completions", chat) },
  { weight: 1, arbitrary: deep },
  { weight: 1, arbitrary: encoded },
  {
    weight: 1,
    arbitrary: posted(
      "/compose/batch",
      fc.record({ requests: fc.array(composed, { maxLength: 4 }), workers: anything }),
    ),
  },
  { weight: 1, arbitrary: lines },
  { weight: 2, arbitrary: broken },
  { weight: 2, arbitrary: looked },
);
