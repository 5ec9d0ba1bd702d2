import fc from "fast-check";
import { chat, claude, response } from "./fuzzed-doors.js";
import {
  anything,
  count,
  engineName,
  history,
  memories,
  message,
  mostly,
  name,
  policy,
  retention,
  text,
} from "./fuzzed-values.js";

/** One request as it goes over the socket. */
export interface FuzzedRequest {
  readonly method: string;
  readonly path: string;
  /** Null: none. */
  readonly body: string | Uint8Array | null;
  readonly type: string;
}

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
  policy,
  retention,
  annotations: mostly(fc.constantFrom(true, false, "paper"), anything),
  engine: engineName,
};
const composed = fc.record(composeFields, { requiredKeys: ["user_id", "messages", "memories"] });
/** With the fields that single prompts have and a batch has for all. */
const composedAlone = fc.record(
  {
    ...composeFields,
    workers: fc.option(mostly(fc.uniqueArray(name, { minLength: 1, maxLength: 3 }), anything)),
    dry_run: mostly(fc.constant(false), anything),
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
      fc.tuple(fc.constant("/v1/responses"), response),
      fc.tuple(fc.constant("/v1/messages"), claude),
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
    fc.constantFrom(
      ...["/compose", "/compose/batch", "/feedback", "/evict", "/memories"],
      ...["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"],
    ),
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
    fc.constantFrom(JSON_TYPE, "text/plain", "application/json; charset=utf-16", ""),
  )
  .map(([path, body, type]) => ({ method: "POST", path, body, type }));
const segment = name.map((part) => encodeURIComponent(part.replace(/\p{Surrogate}/gu, "")) || "%20");
const looked: fc.Arbitrary<FuzzedRequest> = fc
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
  { weight: 6, arbitrary: posted("/v1/responses", response) },
  { weight: 6, arbitrary: posted("/v1/messages", claude) },
  { weight: 1, arbitrary: posted("/v1/messages/count_tokens", claude) },
  { weight: 1, arbitrary: deep },
  { weight: 1, arbitrary: encoded },
  {
    weight: 1,
    arbitrary: posted(
      "/compose/batch",
      fc.record({ requests: fc.array(composed, { maxLength: 4 }), workers: anything }),
    ),
  },
  { weight: 2, arbitrary: broken },
  { weight: 2, arbitrary: looked },
);
