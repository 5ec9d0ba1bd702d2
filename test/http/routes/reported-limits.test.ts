import { describe, expect, it } from "vitest";
import { composeBody, readCompose } from "../../../src/http/contracts/compose-contract.js";
import { sendWith } from "../guards/callers.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { type Behaviour, openAiEngine, sendEvents, sendJson, streamedAnswer, wholeAnswer } from "./openai-engine.js";

const MEMORIES = Array.from({ length: 100 }, (_, n) => `Ada's fact ${n}: house ${n * 31} on street ${n * 7}.`);

/** An engine that counts `ratio` of the stub's tokens, and refuses none. */
const counting =
  (ratio: number): Behaviour =>
  (request, response, usage) => {
    const counted = { ...usage, prompt_tokens: Math.ceil(ratio * usage.prompt_tokens) };
    if (request.body.stream) return sendEvents(response, streamedAnswer("So.", counted));
    return sendJson(response, 200, wholeAnswer("So.", counted));
  };

describe("the proxy with MEMPREFIX_MAX_PROMPT_TOKENS", () => {
  const engine = openAiEngine();
  const source = answeringSource(MEMORIES);
  const MOST = 900;
  const environment = { MEMPREFIX_MAX_PROMPT_TOKENS: String(MOST), MEMPREFIX_API_KEY: "k".repeat(40) };
  const app = servedApp({ source: () => source, upstream: engine, environment });

  const ask = async (messages: readonly object[], more: object = {}, user = "ada") => {
    const named = { authorization: `Bearer ${environment.MEMPREFIX_API_KEY}`, "x-memprefix-user": user };
    const body = { model: "stub-1", messages, ...more };
    const { text, headers } = await sendWith(app, named, "POST", "/v1/chat/completions", body);
    return { text, notComposed: headers.get("x-memprefix-not-composed") };
  };

  it.each([1.3, 2.5, 0.8])("keeps to it by the count of an engine with %f times our tokens", async (ratio) => {
    const counted: number[] = [];
    engine.behave((request, response, usage) => {
      counted.push(Math.ceil(ratio * usage.prompt_tokens));
      return counting(ratio)(request, response, usage);
    });
    const history: object[] = [];
    for (let turn = 0; turn < 12; turn++) {
      source.found = MEMORIES.slice(0, 50).map((memory) => `${turn}: ${memory}`);
      history.push({ role: "user", content: `Question ${turn}?` });
      const more = { stream: turn % 2 === 0, memprefix: { conversation_id: "c", history: "exact" } };
      expect((await ask(history, more)).notComposed).toBeNull();
      history.push({ role: "assistant", content: "So." });
    }
    expect(Math.max(...counted.slice(1))).toBeLessThanOrEqual(MOST);
    expect(Math.max(...counted.slice(6))).toBeGreaterThan(0.85 * MOST);
  });

  it("learns from one user's prompts for that user and model alone", async () => {
    engine.behave(counting(4));
    source.found = MEMORIES;
    const promptOf = async (user: string, model = "stub-1") => {
      const { usage } = JSON.parse((await ask([{ role: "user", content: "What?" }], { model }, user)).text);
      return usage.prompt_tokens / 4;
    };
    const first = await promptOf("ada");
    expect(await promptOf("ada")).toBeLessThan(0.3 * first);
    expect(await promptOf("bob")).toBe(first);
    expect(await promptOf("ada", "stub-2")).toBe(first);
  });
});

describe("max_prompt_tokens of prompts that the caller sends", () => {
  const app = servedApp();
  const memories = MEMORIES.map((memory, at) => ({ id: `m${at}`, memory }));

  it("holds by the engine's count as it is reported, in answers to refuse too", async () => {
    const body = { user_id: "ada", query: "What?", memories, max_prompt_tokens: 700 };
    const { request_id, plan } = await app.compose(body);
    expect(plan.total_tokens).toBeGreaterThan(650);
    const prompt_tokens = Math.ceil(1.3 * plan.total_tokens);
    // A request is reported once: what is said of it again counts for nothing.
    for (const tokens of [prompt_tokens, 3 * prompt_tokens])
      await app.send("POST", "/feedback", { user_id: "ada", request_id, prompt_tokens: tokens });
    const next = await app.compose(body);
    expect(1.3 * next.plan.total_tokens).toBeLessThanOrEqual(700);
    expect(1.3 * next.plan.total_tokens).toBeGreaterThan(650);
    // A repeated request has its own answer.
    expect(await app.compose({ ...body, request_id })).toMatchObject({ request_id, plan });
    const long = await app.send("POST", "/compose", { ...body, query: "word ".repeat(600) });
    expect(long.status).toBe(422);
    expect(long.text).toMatch(/come to 7[89]\d tokens without any memory, more than max_prompt_tokens, 700/);
    expect((await app.compose({ ...body, user_id: "bob" })).plan.total_tokens).toBe(plan.total_tokens);
    const other = app.memprefix.forTenant({ name: "other", cacheSecret: "s" });
    const theirs = await other.compose(readCompose(composeBody.parse(body)));
    expect(theirs.plan.totalTokens).toBe(plan.total_tokens);
  });
});
