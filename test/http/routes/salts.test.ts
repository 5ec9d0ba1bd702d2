import { describe, expect, it } from "vitest";
import { callerOf, sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { openAiEngine } from "./openai-engine.js";

const OPAQUE = /^[\w-]{43}$/;
const RAW = "salt-of-the-client";
const messages = [{ role: "user", content: `What is ${RAW}?` }];

type Body = Readonly<Record<string, unknown>>;

/** Where a body may name a salt, and where it is then. */
const PLACES: readonly (readonly [string, (salt: unknown) => Body])[] = [
  ["vLLM's", (salt) => ({ cache_salt: salt })],
  ["SGLang's key", (extra_key) => ({ extra_key })],
  ["a provider's key", (prompt_cache_key) => ({ prompt_cache_key })],
  ["extra_body's", (salt) => ({ extra_body: { cache_salt: salt, top_k: 1 } })],
  ["a nested form's", (salt) => ({ extra_body: { extra_body: [{ sampling: { extra_key: salt } }] } })],
];

/** Paths that take a prompt, and a body of each. */
const PATHS: readonly (readonly [string, Body])[] = [
  ["chat/completions", { user: "ada", messages }],
  ["chat/completions", { messages }],
  ["messages", { metadata: { user_id: "ada" }, messages, max_tokens: 9 }],
  ["responses", { user: "ada", input: "Tea?" }],
  ["embeddings", { input: "Tea" }],
  ["completions", { prompt: `Is it ${RAW}?` }],
  ["chat/completions", { user: "bo", messages }],
];

describe.each(["vllm", "generic", "mistral"] as const)("a salt that a client names to %s", (family) => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, environment: { MEMPREFIX_ENGINE_FAMILY: family } });
  const isSalted = family === "vllm";

  it.each(PLACES.map(([name, named], at) => [name, named, at === 0 ? PATHS : PATHS.slice(-2)] as const))(
    "is made the tenant's own: %s",
    async (_name, named, paths) => {
      const [acme, other] = [callerOf(app, "acme"), callerOf(app, "other")];
      for (const [path, body] of paths) {
        const sent: string[] = [];
        for (const caller of [acme, other, acme]) {
          const { status } = await caller.send("POST", `/v1/${path}`, { model: "stub-1", ...body, ...named(RAW) });
          expect([path, status]).toEqual([path, 200]);
          sent.push(engine.requests.at(-1)?.raw ?? "");
        }
        const salts = sent.map((raw) => JSON.stringify(saltsIn(JSON.parse(raw))));
        expect(salts[0]).not.toContain(RAW);
        expect(salts[0]).not.toBe(salts[1]);
        expect(salts[0]).toBe(salts[2]);
        // What is not a salt stays as it is.
        if (path === "completions") expect(sent[0]).toContain(`Is it ${RAW}?`);
      }
    },
  );

  it("does not end the tenant's own where it is null, empty, repeated, of another family, or behind a list", async () => {
    const [acme, other] = [callerOf(app, "acme"), callerOf(app, "other")];
    const salt = async (caller: typeof acme, more: string, path = "chat/completions") => {
      const body = `{"user": "ada", "messages": ${JSON.stringify(messages)}, "prompt": "Tea?"${more}}`;
      expect((await caller.send("POST", `/v1/${path}`, body)).status).toBe(200);
      const { raw = "" } = engine.requests.at(-1) ?? {};
      expect(raw.replace(JSON.stringify(messages[0]?.content), "")).not.toContain(RAW);
      return JSON.parse(raw)["cache_salt"] as unknown;
    };
    for (const path of ["chat/completions", "completions"]) {
      const own = await salt(acme, "", path);
      if (isSalted) expect(own).toMatch(OPAQUE);
      else expect(own).toBeUndefined();
      expect(await salt(acme, ', "cache_salt": null', path)).toBe(own);
      expect(await salt(acme, ', "cache_salt": ""', path)).toBe(own);
      expect(await salt(acme, ', "cache_salt": []', path)).toBe(own);
      if (isSalted) expect(await salt(other, "", path)).not.toBe(own);
    }
    expect(await salt(acme, ', "memprefix": {"engine": "generic"}')).toBe(await salt(acme, ""));
    const named = await salt(acme, `, "cache_salt": "${RAW}"`);
    expect(named).toMatch(OPAQUE);
    expect(await salt(acme, `, "cache_salt": "first", "cache_salt": "${RAW}"`)).toBe(named);
    expect(engine.requests.at(-1)?.raw).not.toContain("first");
    expect(await salt(acme, `, "cache_salt": ["${RAW}"]`, "completions")).toEqual([named]);
    expect(await salt(acme, ', "cache_salt": 7')).toMatch(OPAQUE);
  });

  it("that is not there leaves a request that names no user as it is, with its reason", async () => {
    const body = `{ "model":"stub-1",  "messages": [{"role":"user","content":"T\\u0065a?"}],"n":1.0 }`;
    const { status, headers } = await sendWith(app, {}, "POST", "/v1/chat/completions", body);
    expect([status, headers.get("x-memprefix-not-composed"), headers.get("x-memprefix-warnings")]).toEqual([
      200,
      "no_user",
      "not_composed",
    ]);
    const raw = engine.requests[0]?.raw ?? "";
    if (isSalted) expect(raw.startsWith(body.slice(0, -2))).toBe(true);
    else if (family === "generic") expect(raw).toBe(body);
    expect(app.log.at(-1)).toMatchObject({ notComposed: "no_user" });
    const { text } = await app.send("GET", "/metrics");
    expect(text).toContain('memprefix_not_composed_chats_total{reason="no_user"} 1');
  });
});

/** All salts of a body, at any depth, without content. */
function saltsIn(value: unknown): unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) =>
    /^(?:cache_salt|extra_key|prompt_cache_key)$/.test(name) ? [name, field] : saltsIn(field),
  );
}
