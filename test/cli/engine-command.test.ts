import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { serveEngine } from "../../src/cli/engine.js";
import { llamaMissing, tinyModel } from "../engines/random-model/tiny-model.js";
import { commands } from "./memprefix-command.js";

const missing = await llamaMissing();
const skipped = missing === null ? "" : ` (skipped: ${missing})`;
const FACTS = "Ada plays the cello, lives in Ghent, and is allergic to nuts. ".repeat(5);

async function chat(
  address: string,
  content: string,
  headers: Readonly<Record<string, string>> = {},
  fields: Readonly<Record<string, unknown>> = {},
) {
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({
      model: "tiny",
      messages: [{ role: "user", content }],
      max_tokens: 2,
      temperature: 0,
      ...fields,
    }),
  });
  return { status: response.status, body: (await response.json()) as unknown };
}
const cached = (tokens: unknown) => ({
  status: 200,
  body: { usage: { prompt_tokens_details: { cached_tokens: tokens } } },
});

describe("memprefix engine random-model", () => {
  const memprefix = commands();

  it("writes a model, says that its text is noise, and never replaces a file", async () => {
    const out = join(memprefix.root, "random.gguf");
    const { code, stdout } = await memprefix.run(["engine", "random-model", "--size", "23m", "--out", out]);
    expect(code).toBe(0);
    expect(stdout).toBe(`${out}: 23 million random parameters, 26 MB; its text is noise\n`);
    expect(readFileSync(out).toString("latin1", 0, 4)).toBe("GGUF");
    const again = await memprefix.run(["engine", "random-model", "--out", out]);
    expect(again).toMatchObject({ code: 1, stdout: "" });
    expect(again.stderr).toMatch(/^memprefix: EEXIST.*\n$/);
  });
});

describe.skipIf(missing !== null)(`memprefix engine serve${skipped}`, () => {
  const file = tinyModel();

  it("answers over a socket, and reuses what it computed", async () => {
    const engine = await serveEngine(
      { model: file.path, host: "127.0.0.1", port: 0, slots: 1, context: 512, threads: 1 },
      () => {},
    );
    try {
      expect(await chat(engine.address, FACTS)).toMatchObject(cached(0));
      expect(await chat(engine.address, FACTS)).toMatchObject(
        cached(expect.toSatisfy((tokens: number) => tokens > 50)),
      );
      const models = await fetch(`${engine.address}/v1/models`);
      expect(await models.json()).toMatchObject({ data: [{ id: "tiny.gguf", max_model_len: 512 }] });
    } finally {
      await engine.stop();
    }
    await expect(fetch(`${engine.address}/v1/models`)).rejects.toThrow();
  });

  it("keeps bodies to the service's limits: size, nesting, reserved names, pace", async () => {
    const faults: unknown[] = [];
    const engine = await serveEngine(
      { model: file.path, host: "127.0.0.1", port: 0, slots: 1, context: 512, threads: 1 },
      (error) => faults.push(error),
      { idleMs: 200, bytesPerSecond: 4_096 },
    );
    const send = async (body: string | ReadableStream) => {
      const path = `${engine.address}/v1/chat/completions`;
      const answer = await fetch(path, { method: "POST", body, duplex: "half" } as RequestInit);
      return { status: answer.status, error: (JSON.parse(await answer.text()) as { error: unknown }).error };
    };
    const withField = (field: string) => `{"messages":[{"role":"user","content":"Hi?"}],"max_tokens":1,${field}}`;
    try {
      expect((await send(withField(`"user":"ada"`))).status).toBe(200);
      const deep = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
      expect(await send(withField(`"metadata":${deep}`))).toMatchObject({ status: 422, error: { param: "metadata" } });
      expect(await send(withField(`"__proto__":{}`))).toMatchObject({ status: 422, error: { param: "__proto__" } });
      expect(await send(`"${"x".repeat(16 * 1024 * 1024)}"`)).toMatchObject({ status: 413, error: { param: "body" } });
      const silent = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("{")) });
      const slow = await send(silent);
      expect(slow).toMatchObject({ status: 408, error: { message: "no byte of the body arrived for 200 ms" } });
      expect(await send("{")).toMatchObject({ status: 400 });
      expect(faults).toEqual([]);
    } finally {
      await engine.stop();
    }
  });
});

describe.skipIf(missing !== null)(`memprefix serve with MEMPREFIX_ENGINE=embedded${skipped}`, () => {
  const file = tinyModel();
  const memprefix = commands();

  it("composes, answers from the engine inside, and keeps caches of different salts apart", async () => {
    const environment = { MEMPREFIX_ENGINE: "embedded", MEMPREFIX_MODEL: file.path, MEMPREFIX_CONTEXT_TOKENS: "1024" };
    const { address, kill, ended } = await memprefix.serve(environment);
    const ada = { "x-memprefix-user": "ada" };
    expect(await chat(address, FACTS, ada)).toMatchObject(cached(0));
    expect(await chat(address, FACTS, ada)).toMatchObject(cached(expect.toSatisfy((tokens: number) => tokens > 50)));
    expect(await chat(address, FACTS, ada, { cache_salt: "another" })).toMatchObject(cached(0));
    expect(await chat(address, FACTS.repeat(20), ada)).toMatchObject({
      status: 400,
      body: { error: { code: "context_length_exceeded" } },
    });
    kill("SIGTERM");
    expect(await ended).toMatchObject({ code: 0 });
  });

  it("keeps prompts within the engine's context, with room for the answer", async () => {
    const environment = { MEMPREFIX_ENGINE: "embedded", MEMPREFIX_MODEL: file.path, MEMPREFIX_CONTEXT_TOKENS: "1024" };
    const { address, kill, ended } = await memprefix.serve(environment);
    const memories = Array.from({ length: 60 }, (_, at) => ({
      id: `m${at}`,
      memory: `Ada owns house ${at}, with garden and roof.`,
    }));
    const compose = async (more: object) => {
      const response = await fetch(`${address}/compose`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ user_id: "bob", query: "Where?", memories, ...more }),
      });
      return (await response.json()) as { plan: { total_tokens: number }; warnings: { code: string }[] };
    };
    const first = await compose({});
    expect(first.plan.total_tokens).toBeLessThanOrEqual(768);
    expect(first.plan.total_tokens).toBeGreaterThan(700);
    expect(first.warnings).toMatchObject([{ code: "memory_left_out" }]);
    // Prompts for an engine of another family, or with a limit of their own, are not the engine's inside.
    for (const more of [{ engine: "openai" }, { max_prompt_tokens: 10_000 }])
      expect((await compose(more)).plan.total_tokens).toBeGreaterThan(1_024);
    const answer = await chat(address, "Where?", { "x-memprefix-user": "ada" }, { memprefix: { memories } });
    const { usage } = answer.body as { usage: { prompt_tokens: number } };
    expect(answer.status).toBe(200);
    expect(usage.prompt_tokens).toBeLessThanOrEqual(1_022);
    expect(usage.prompt_tokens).toBeGreaterThan(900);
    kill("SIGTERM");
    expect(await ended).toMatchObject({ code: 0 });
  });

  it("does not start without a model that can be loaded", async () => {
    const environment = {
      MEMPREFIX_ENGINE: "embedded",
      MEMPREFIX_MODEL: join(memprefix.root, "none.gguf"),
      MEMPREFIX_PORT: "0",
      MEMPREFIX_SOURCE: "none",
    };
    const { code, stderr } = await memprefix.run(["serve"], { environment });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^memprefix: .*none\.gguf cannot be loaded as a model: ENOENT.*\n$/);
  });
});
