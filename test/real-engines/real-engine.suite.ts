import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type Launched, launch, listening } from "../cli/launch.js";
import { temporaryFolder } from "../temporary-folders.js";
import { isInstalled } from "./install.js";
import { type RealEngine, type ServingOptions, serving } from "./serving.js";

const chatAnswer = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string().nullable() }) })).min(1),
  usage: z.object({
    prompt_tokens: z.int(),
    prompt_tokens_details: z.object({ cached_tokens: z.int() }).nullish(),
  }),
});

/** What one prompt came to, in the engine's tokens. */
export interface Sent {
  readonly text: string;
  readonly prompt: number;
  readonly cached: number;
  readonly expected: number;
}

/** A client of a service in front of engines. */
interface Chats {
  post(path: string, body: object, headers?: Readonly<Record<string, string>>): Promise<Response>;
  /** Sends a chat; rejects unless it is answered. */
  chat(
    user: string,
    messages: readonly object[],
    more?: object,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Sent>;
}

/** A built service in front of a real engine. */
export interface Fronted extends Chats {
  readonly engine: RealEngine;
  readonly base: string;
  readonly database: string;
  /** Ends the engine as `kill -9` does, and starts another at its address. */
  restartEngine(options?: Partial<ServingOptions>): Promise<void>;
}

/** Why the engines are not there; null where they are. */
const MISSING = isInstalled() ? null : "no real engines: npm run engines installs them";

/** Twenty memories of a user, of which each turn finds another ten. */
export const memoriesOf = (turn: number) =>
  Array.from({ length: 10 }, (_, n) => {
    const at = (3 * turn + n * n) % 40;
    return {
      id: `m${at}`,
      memory: `Fact ${at}: in the year ${1_960 + at} Ada moved to house ${at} in the long street by the old river.`,
    };
  });

/** @param model of every chat */
export function chatsAt(base: string, model: string): Chats {
  const post: Chats["post"] = (path, body, headers = {}) =>
    fetch(base + path, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
  return {
    post,
    async chat(user, messages, more = {}, headers = {}) {
      const body = { model, temperature: 0, max_tokens: 8, messages, ...more };
      const response = await post("/v1/chat/completions", body, { "x-memprefix-user": user, ...headers });
      const text = await response.text();
      expect(response.status, text).toBe(200);
      const { choices, usage } = chatAnswer.parse(JSON.parse(text));
      return {
        text: choices[0]?.message.content ?? "",
        prompt: usage.prompt_tokens,
        cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
        expected: Number(response.headers.get("x-memprefix-expected-cached-tokens")),
      };
    },
  };
}

/** Runs tests with a real engine and a service in front of it, or says that there is none. */
export function withEngine(
  name: string,
  given: ServingOptions,
  environment: Readonly<Record<string, string>>,
  tests: (of: () => Fronted) => void,
): void {
  describe.skipIf(MISSING !== null)(MISSING ?? name, () => {
    let engine: RealEngine;
    let service: Launched;
    let fronted: Fronted;
    const folder = temporaryFolder();

    beforeAll(async () => {
      engine = await serving(given);
      service = launch(["serve"], {
        PATH: process.env["PATH"] ?? "",
        MEMPREFIX_DATA_DIR: folder,
        MEMPREFIX_PORT: "0",
        MEMPREFIX_SOURCE: "none",
        MEMPREFIX_UPSTREAM_URL: engine.url,
        ...environment,
      });
      fronted = front(await listening(service));
    }, 700_000);
    afterAll(async () => {
      service?.child.kill("SIGTERM");
      await service?.ended;
      await engine?.kill();
    });

    function front(base: string): Fronted {
      return {
        get engine() {
          return engine;
        },
        base,
        database: join(folder, "memprefix.db"),
        ...chatsAt(base, given.model),
        async restartEngine(options = {}) {
          await engine.kill();
          engine = await serving({ ...engine.options, ...options });
        },
      };
    }

    tests(() => fronted);
  });
}

/** What every engine has to do through every door. */
export function everyDoor(of: () => Fronted, model: string): void {
  const memprefix = (turn: number, conversation = "doors") => ({
    conversation_id: conversation,
    memories: memoriesOf(turn),
  });
  const question = { role: "user", content: "In which year did Ada move to house 9? Answer in a few words." };

  it("answers the same, whole and streamed", async () => {
    const { chat, post } = of();
    // llama.cpp rounds otherwise where a prompt is computed than where it is cached, which may change its answer.
    await chat("ann", [question], { memprefix: memprefix(0, "cold") });
    const whole = await chat("ada", [question], { memprefix: memprefix(0, "whole") });
    const body = {
      model,
      temperature: 0,
      max_tokens: 8,
      messages: [question],
      memprefix: memprefix(0, "streamed"),
      stream: true,
    };
    const events = await (await post("/v1/chat/completions", body, { "x-memprefix-user": "bob" })).text();
    const said = events
      .split("\n")
      .filter((line) => line.startsWith("data: {"))
      .map((line) => JSON.parse(line.slice(6)) as { choices?: { delta?: { content?: string | null } }[] })
      .map(({ choices }) => choices?.[0]?.delta?.content ?? "");
    expect(said.join("")).toBe(whole.text);
    expect(events).toContain("data: [DONE]");
  });

  it("answers Responses and Messages", async () => {
    const { post } = of();
    const user = { "x-memprefix-user": "eve" };
    const responded = await post("/v1/responses", { model, input: "Say hello.", max_output_tokens: 8 }, user);
    expect(await responded.json()).toMatchObject({ object: "response", output: [{ type: "message" }] });
    const body = { model, max_tokens: 8, messages: [{ role: "user", content: "Say hello." }] };
    const message = await post("/v1/messages", body, { ...user, "anthropic-version": "2023-06-01" });
    expect(await message.json()).toMatchObject({ type: "message", role: "assistant" });
  });

  it("takes a tool's call and its result, with memories after it", async () => {
    const tools = [
      {
        type: "function",
        function: { name: "clock", description: "The time.", parameters: { type: "object", properties: {} } },
      },
    ];
    const call = { id: "call_1", type: "function", function: { name: "clock", arguments: "{}" } };
    const messages = [
      question,
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "It is noon." },
    ];
    const { prompt } = await of().chat("tess", messages, {
      tools,
      tool_choice: "none",
      memprefix: memprefix(1, "tools"),
    });
    expect(prompt).toBeGreaterThan(100);
  });

  it("is never sent more than its context holds", async () => {
    const memories = Array.from({ length: 400 }, (_, n) => ({
      id: `l${n}`,
      memory: `Fact ${n}: ${"the long road by the river ".repeat(8)}`,
    }));
    const { prompt } = await of().chat("lou", [question], { memprefix: { conversation_id: "long", memories } });
    expect(prompt).toBeGreaterThan(1_000);
  }, 300_000);
}
