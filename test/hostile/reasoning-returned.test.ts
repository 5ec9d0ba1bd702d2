/*
 * Attacked: agents whose model reasons between its calls of tools, behind every door and over every kind of engine. Broke: what an engine
 * gave as reasoning, or as the signature of a call, was dropped on its way back through another API; DeepSeek and Gemini answer that with
 * 400, Qwen's and GLM's templates go on without it.
 * Held: a signature goes back with its own text alone, and to the kind of engine that made it.
 */
import { describe, expect, it } from "vitest";
import { answeringSource } from "../http/routes/answering-source.js";
import { anthropicServer } from "../http/routes/anthropic-server.js";
import { openAiEngine, sendJson } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";
import { IS_WHOLE } from "../run-length.js";
import { AGENTS, type Agent, type Asking, TEXT_ALONE } from "./reasoning-clients.js";
import {
  answerChat,
  ENGINES,
  type Json,
  lackOf,
  messageOf,
  type ReasoningEngine,
  STEPS,
  type Step,
} from "./reasoning-engines.js";
import { answerMessage, answerUnsigned } from "./signed-thinking-engine.js";

const FINAL = STEPS.map((steps) => steps.at(-1)?.text);

describe.each(Object.entries(ENGINES))("an engine's reasoning, %s", (kind, reasoning) => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const app = servedApp({ source: () => source, upstream: engine });

  it("goes back to it from every door, streamed and not", async () => {
    engine.behave(({ url, raw }, response) =>
      url === "/v1/chat/completions"
        ? answerChat(reasoning, JSON.parse(raw), response)
        : sendJson(response, 404, { detail: "Not Found" }),
    );
    source.found = ["Ada likes it warm."];
    const { "chat completions": ofChats, ...converted } = AGENTS;
    // A chat passes as it is; the client here puts no parts of a content together.
    const agents = reasoning.fields.includes("content") || ofChats === undefined ? converted : AGENTS;
    await askedByAll(agents, Object.keys(ENGINES).indexOf(kind), async (agent, asking) => {
      expect(await agent(app, asking)).toEqual(FINAL);
      expect(lacks(reasoning, chatsOf(engine.requests).at(-1) ?? [])).toEqual([]);
    });
    expect(app.faults).toEqual([]);
  });
});

describe.each(["reasoning", "reasoning_content"])("an engine that reads reasoning by the name %s alone", (name) => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource([]), upstream: engine });
  const reasoning = Object.entries(ENGINES).find(([, { fields }]) => fields.length === 1 && fields[0] === name)?.[1];

  it.each([false, true])("is given it by that, whatever its client calls it (stream: %s)", async (stream) => {
    engine.behave(({ raw }, response) => answerChat(reasoning as ReasoningEngine, JSON.parse(raw), response));
    expect(await TEXT_ALONE(app, { stream, conversation: "c" })).toEqual(FINAL);
    expect(lacks(reasoning as ReasoningEngine, chatsOf(engine.requests).at(-1) ?? [])).toEqual([]);
  });
});

describe("Anthropic's signed thinking", () => {
  const anthropic = anthropicServer();
  const source = answeringSource([]);
  const app = servedApp({
    source: () => source,
    upstream: anthropic,
    environment: { MEMPREFIX_UPSTREAM_API: "anthropic" },
  });

  it("goes back to it from every door, unmodified and first", async () => {
    anthropic.behave(answerMessage);
    source.found = ["Ada likes it warm."];
    const more = { thinking: { type: "enabled", budget_tokens: 1_024 } };
    await askedByAll({ ...AGENTS, "chat completions, the text alone": TEXT_ALONE }, null, async (agent, asking) => {
      expect(await agent(app, { ...asking, more })).toEqual(["Go to Faro.", "Yes."]);
    });
    for (const { body } of anthropic.calls) expect(body).toMatchObject(more);
    expect(app.faults).toEqual([]);
  });
});

describe("thinking of a server that speaks Anthropic's API and signs nothing", () => {
  const anthropic = anthropicServer();
  const app = servedApp({
    source: () => answeringSource(["Ada likes it warm."]),
    upstream: anthropic,
    environment: { MEMPREFIX_UPSTREAM_API: "anthropic" },
  });

  it("goes back to it from every door, unmodified and first", async () => {
    anthropic.behave(answerUnsigned);
    const more = { thinking: { type: "enabled", budget_tokens: 1_024 } };
    await askedByAll({ ...AGENTS, "chat completions, the text alone": TEXT_ALONE }, null, async (agent, asking) => {
      expect(await agent(app, { ...asking, more: { ...more, model: asking.conversation } })).toEqual([
        "Go to Faro.",
        "Yes.",
      ]);
    });
    for (const { body } of anthropic.calls) expect(body).toMatchObject(more);
    expect(app.faults).toEqual([]);
  });
});

/**
 * Has every agent ask, streamed and not, and says which of them failed. Where not all is run, the engines of a list take turns: each has every
 * other door streamed, and each door is streamed by every other engine.
 */
async function askedByAll(
  agents: Readonly<Record<string, Agent>>,
  turn: number | null,
  ask: (agent: Agent, asking: Asking) => Promise<void>,
): Promise<void> {
  const failed: Record<string, string> = {};
  for (const [at, [door, agent]] of Object.entries(agents).entries()) {
    for (const stream of IS_WHOLE || turn === null ? [false, true] : [(at + turn) % 2 === 0]) {
      const conversation = `${door}${stream ? ", streamed" : ""}`;
      await ask(agent, { stream, conversation }).catch((error: unknown) => {
        failed[conversation] = String(error);
      });
    }
  }
  expect(failed).toEqual({});
}

/** What the engine lacks of the first question's messages, which its templates may leave out but are to be given. */
function lacks(engine: ReasoningEngine, messages: readonly Json[]): readonly string[] {
  const said = messages.filter(({ role }) => role === "assistant");
  return (STEPS[0] ?? []).flatMap((step: Step, at) => {
    const lacking = lackOf(engine, said[at] ?? {}, messageOf(engine, step, `0.${at}`));
    return lacking === null ? [] : [lacking];
  });
}

function chatsOf(requests: readonly { readonly url: string; readonly raw: string }[]): (readonly Json[])[] {
  return requests
    .filter(({ url }) => url === "/v1/chat/completions")
    .map(({ raw }) => (JSON.parse(raw) as { messages: readonly Json[] }).messages);
}
