import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerChat, ENGINES, STEPS } from "../hostile/reasoning-engines.js";
import { answerMessage } from "../hostile/signed-thinking-engine.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { anthropicServer } from "../http/routes/anthropic-server.js";
import { openAiEngine, sendJson } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";
import type { Introduction, Order, Outcome } from "./client-program.js";
import { installClient } from "./heavy-clients.js";
import { LIGHT_CLIENTS, lightClient } from "./light-clients.js";
import { type RunningProgram, startProgram } from "./running-program.js";

const PROGRAMS = [
  "anthropic.ts",
  "openai-responses.ts",
  "ai-sdk-anthropic.ts",
  "ai-sdk-openai.ts",
  "ai-sdk-compatible.ts",
];
/** A client of chats, … */
const OF_CHATS = "ai-sdk-compatible.ts";
/** … which returns nothing but a text of reasoning under these names. All else it loses by itself: calls' signatures, blocks, details. */
const RETURNED = ["DeepSeek's, with reasoning_content", "vLLM's, with reasoning", "vLLM's, with both names"];
const USES = ["tools", "steps"] as const;
const FINAL = STEPS.map((steps) => steps.at(-1)?.text);
const QUESTIONS = ["Where is it warm?", "Sure?"];

describe.each(PROGRAMS)("%s, with an agent's loop of two calls at once", (name) => {
  const engine = openAiEngine();
  const anthropic = anthropicServer();
  const source = answeringSource(["Ana likes it warm."]);
  const overChats = servedApp({ source: () => source, upstream: engine });
  const environment = { MEMPREFIX_UPSTREAM_API: "anthropic" };
  const overAnthropic = servedApp({ source: () => source, upstream: anthropic, environment });
  let program: RunningProgram<Introduction, Order, Outcome>;
  const folder = mkdtempSync(join(tmpdir(), "memprefix-clients-"));
  beforeAll(async () => {
    const place = LIGHT_CLIENTS.includes(name) ? lightClient(name) : await installClient(`programs/${name}`, folder);
    program = await startProgram<Introduction, Order, Outcome>(place);
  });
  afterAll(async () => {
    await program.stop();
    rmSync(folder, { recursive: true });
  });

  const held = async (base: string, url: string, conversation: string) => {
    const outcomes: Record<string, Outcome> = {};
    for (const use of USES) {
      const headers = { "x-memprefix-user": "ana", "x-memprefix-conversation": `${conversation} ${use}` };
      outcomes[use] = await program.ask({ use, session: { base, engine: url, headers, questions: QUESTIONS } });
    }
    return outcomes;
  };
  const wanted = Object.fromEntries(USES.map((use) => [use, { answers: FINAL }]));

  it("returns an engine its reasoning, and the signatures of its calls", { timeout: 60_000 }, async () => {
    for (const [kind, reasoning] of Object.entries(ENGINES)) {
      engine.behave(({ url, raw }, response) =>
        url === "/v1/chat/completions"
          ? answerChat(reasoning, JSON.parse(raw), response)
          : sendJson(response, 404, { detail: "Not Found" }),
      );
      if (name === OF_CHATS && !RETURNED.includes(kind))
        expect(await held(new URL(engine.url).origin, engine.url, kind), `${kind}, without memprefix`).not.toEqual(
          wanted,
        );
      else expect(await held(overChats.base, engine.url, kind), kind).toEqual(wanted);
    }
  });

  it("returns Anthropic its signed thinking", { timeout: 60_000 }, async () => {
    anthropic.behave(answerMessage);
    expect(await held(overAnthropic.base, anthropic.url, "signed")).toEqual(wanted);
  });
});
