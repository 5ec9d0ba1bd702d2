/*
 * Attacked: agents whose model reasons between its calls of tools, with memprefix restarted before each of their requests. Broke: over a server
 * that speaks Anthropic's API and signs nothing, all thinking was dropped, as of a model of which it is not known that it takes it.
 * And over vLLM, which reads `reasoning`, what a client returns by another name. Held: a signature that a client dropped is remembered in memory
 * alone, and so is another name for other engines, some of which take no field that they do not know.
 */
import { describe, expect, it } from "vitest";
import { anthropicServer } from "../http/routes/anthropic-server.js";
import { openAiEngine, sendJson } from "../http/routes/openai-engine.js";
import { AGENTS, type Agent, TEXT_ALONE } from "./reasoning-clients.js";
import { answerChat, ENGINES, type ReasoningEngine, STEPS } from "./reasoning-engines.js";
import { type RestartingApp, restartingApp } from "./restarting-app.js";
import { answerMessage, answerUnsigned } from "./signed-thinking-engine.js";

const FINAL = STEPS.map((steps) => steps.at(-1)?.text);
/** Items are remembered in memory. */
const { "Responses with item references": _references, ...DOORS } = AGENTS;

async function failuresOf(app: RestartingApp, doors: Readonly<Record<string, Agent>>, more = {}) {
  const failed: Record<string, unknown> = {};
  for (const [at, [door, agent]] of Object.entries(doors).entries())
    await agent(app, { stream: at % 2 === 0, conversation: door, more: { model: door, ...more } }).then(
      (answers) => expect(answers).toEqual(FINAL),
      (error: unknown) => {
        failed[door] = String(error);
      },
    );
  return failed;
}

describe.each([
  ["signs", answerMessage],
  ["signs nothing", answerUnsigned],
])("thinking of a server of Anthropic's API that %s", (_what, answer) => {
  const anthropic = anthropicServer();
  const app = restartingApp(anthropic, { MEMPREFIX_UPSTREAM_API: "anthropic" });

  it("goes back to it from every door, though memprefix was restarted", async () => {
    anthropic.behave(answer);
    expect(await failuresOf(app, DOORS, { thinking: { type: "enabled", budget_tokens: 1_024 } })).toEqual({});
    expect(app.faults).toEqual([]);
  });
});

describe.each(["vLLM's, with reasoning", "Gemini's, with signed calls"])("reasoning of an engine, %s", (kind) => {
  const engine = openAiEngine();
  const app = restartingApp(engine);

  it("goes back to it from every door, though memprefix was restarted", async () => {
    engine.behave(({ url, raw }, response) =>
      url === "/v1/chat/completions"
        ? answerChat(ENGINES[kind] as ReasoningEngine, JSON.parse(raw), response)
        : sendJson(response, 404, { detail: "Not Found" }),
    );
    expect(await failuresOf(app, DOORS)).toEqual({});
    expect(app.faults).toEqual([]);
  });
});

describe.each(["vLLM's, with reasoning", "DeepSeek's, with reasoning_content"])(
  "a server that gives it as %s",
  (kind) => {
    const engine = openAiEngine();
    const app = restartingApp(engine, { MEMPREFIX_ENGINE_FAMILY: "vllm" });

    it("reads it though its client returns it by another name, and memprefix was restarted", async () => {
      engine.behave(({ raw }, response) => answerChat(ENGINES[kind] as ReasoningEngine, JSON.parse(raw), response));
      expect(await failuresOf(app, { TEXT_ALONE })).toEqual({});
      expect(app.faults).toEqual([]);
    });
  },
);
