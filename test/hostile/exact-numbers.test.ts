/*
 * Attacked: numbers that JavaScript has not, as Python's clients and 64-bit ids have them, through every door and back. Broke: all of them came
 * rounded, in calls of tools, in schemas and as seeds, also where nothing was composed. Held: calls of tools in streams, whose arguments are text.
 */
import { describe, expect, it } from "vitest";
import { answeringSource } from "../http/routes/answering-source.js";
import { anthropicServer } from "../http/routes/anthropic-server.js";
import { openAiEngine, sendEvents, sendJson, wholeAnswer } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";

const IDS = ["9223372036854775807", "-12345678901234567890", "9007199254740993"];
/** An object with all of them, as JSON in which nothing else is a number. */
const INPUT = `{"ids":[${IDS.join()}],"said":"9223372036854775807 \\"1\\"","safe":"\\\\"}`;
const SCHEMA = `{"type":"object","properties":{"id":{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}}}`;
const text = (json: string) => JSON.stringify(json);

/** Bodies of each door with calls, schemas and seeds; `tools` where the door has them in another form. */
const DOORS: readonly (readonly [path: string, body: string])[] = [
  [
    "/v1/chat/completions",
    `"seed":9223372036854775807,"tools":[{"type":"function","function":{"name":"find","parameters":${SCHEMA}}}],"messages":[{"role":"user","content":"Which?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"find","arguments":${text(INPUT)}}}]},{"role":"tool","tool_call_id":"c","content":"9223372036854775807"},{"role":"user","content":"And?"}]`,
  ],
  [
    "/v1/messages",
    `"max_tokens":9,"tools":[{"name":"find","input_schema":${SCHEMA}}],"messages":[{"role":"user","content":"Which?"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"find","input":${INPUT}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"9223372036854775807"},{"type":"text","text":"And?"}]}]`,
  ],
  [
    "/v1/responses",
    `"tools":[{"type":"function","name":"find","parameters":${SCHEMA}}],"input":[{"role":"user","content":"Which?"},{"type":"function_call","call_id":"c","name":"find","arguments":${text(INPUT)}},{"type":"function_call_output","call_id":"c","output":"9223372036854775807"},{"role":"user","content":"And?"}]`,
  ],
];
const bytes = (json: string) => new TextEncoder().encode(json);

describe("numbers that JavaScript has not, in prompts that memprefix composes for their sender,", () => {
  const app = servedApp({ source: () => answeringSource(["Ada drinks green tea"]) });
  const messages = `[{"role":"user","content":"Which?"},{"role":"assistant","content":"\uf8ffmemprefix:number:7","found":${INPUT}},{"role":"user","content":"And?"}]`;
  const asked = (id: string, more = "") =>
    `{"user_id":"ada","conversation_id":"c","request_id":"${id}","messages":${messages}${more}}`;
  const sent = (path: string, body: string, type = "application/json") => app.send("POST", path, bytes(body), type);

  it("come back as they were said, one by one, in batches, and where they are shown", async () => {
    const answers = [
      await sent("/compose", asked("one")),
      await sent("/compose", asked("one")),
      await sent("/compose/batch", `{"requests":[${asked("two")}]}`),
      await sent("/compose/batch", `${asked("three")}\n`, "application/x-ndjson"),
      await app.send("GET", "/users/ada/export"),
    ];
    for (const [at, { status, text: said }] of answers.entries()) {
      expect([at, status]).toEqual([at, 200]);
      expect(said).toContain(INPUT);
      expect([at, said.includes("memprefix:number:7"), said.includes("\uf8ff")]).toEqual([at, true, false]);
    }
  });

  it("are what they were where memprefix reads them", async () => {
    const huge = ',"memory_budget_tokens":12345678901234567890';
    expect((await sent("/compose", asked("four", huge))).status).toBe(422);
    const batch = await sent("/compose/batch", `{"requests":[${asked("five", huge)},${asked("six")}]}`);
    expect(JSON.parse(batch.text)).toMatchObject({ end: { composed: 1, failed: 1 } });
    expect((await sent("/compose/batch", '{"requests":[],"planner":12345678901234567890}')).status).toBe(422);
  });
});

describe.each(["openai", "anthropic"] as const)(
  "numbers that JavaScript has not, in front of the API of %s,",
  (api) => {
    const engine = openAiEngine();
    const anthropic = anthropicServer();
    const sent: string[] = [];
    const app = servedApp({
      source: () => answeringSource(["Ada drinks green tea"]),
      upstream: {
        get url() {
          return api === "openai" ? engine.url : anthropic.url;
        },
      },
      environment: { MEMPREFIX_UPSTREAM_API: api },
    });
    const usage = {
      prompt_tokens: 1,
      completion_tokens: 1,
      total_tokens: 2,
      prompt_tokens_details: { cached_tokens: 0 },
    };

    it.each(DOORS)("reach it as they are said, composed and not: %s", async (path, body) => {
      engine.behave(({ url, raw }, response) => {
        if (url.endsWith("/responses")) return sendJson(response, 404, { detail: "Not Found" });
        sent.push(raw);
        sendJson(response, 200, wholeAnswer("Yes.", usage, {}, {}));
      });
      for (const base of ["", "/plain"]) {
        const { status, text: said } = await app.send(
          "POST",
          base + path,
          bytes(`{"model":"m","user":"ada","metadata":{"user_id":"ada"},${body}}`),
        );
        expect([base, status]).toEqual([base, 200]);
        const raw = api === "openai" ? sent.at(-1) : anthropic.raws.at(-1);
        expect(raw?.includes("green tea")).toBe(base === "");
        // Calls are objects by Anthropic's API, and text by OpenAI's.
        expect([raw?.includes(INPUT), raw?.includes(text(INPUT))]).toContain(true);
        expect(raw).toContain(SCHEMA);
        if (path === "/v1/chat/completions" && api === "openai") expect(raw).toContain('"seed":9223372036854775807');
        expect(raw + said).not.toContain("memprefix:number");
      }
    });

    it("come back as it says them, streamed and whole", async () => {
      engine.behave(({ url, body: { stream } }, response) => {
        if (url.endsWith("/responses")) return sendJson(response, 404, { detail: "Not Found" });
        const call = { index: 0, id: "c", type: "function", function: { name: "find", arguments: INPUT } };
        const choice = { index: 0, finish_reason: "tool_calls" };
        const message = { role: "assistant", content: null, tool_calls: [call] };
        if (stream) sendEvents(response, [{ id: "1", choices: [{ ...choice, delta: message }] }]);
        else sendJson(response, 200, { id: "1", choices: [{ ...choice, message }], usage });
      });
      anthropic.behave((response, { body: { stream } }) => {
        const call = `{"type":"tool_use","id":"c","name":"find","input":${INPUT}}`;
        const end = '"delta":{"stop_reason":"tool_use"}';
        const message = `{"type":"message","role":"assistant","id":"1","content":[${stream ? "" : call}],"stop_reason":"tool_use"}`;
        const events = [
          `{"type":"message_start","message":${message}}`,
          `{"type":"content_block_start","index":0,"content_block":${call}}`,
          '{"type":"content_block_stop","index":0}',
          `{"type":"message_delta",${end}}`,
          '{"type":"message_stop"}',
        ];
        response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
        response.end(stream ? events.map((event) => `data: ${event}\n\n`).join("") : message);
      });
      for (const [path, body] of DOORS)
        for (const stream of [false, true]) {
          const { text: said } = await app.send(
            "POST",
            path,
            bytes(`{"model":"m","user":"ada","metadata":{"user_id":"ada"},"stream":${stream},${body}}`),
          );
          for (const id of IDS) expect([path, stream, said.includes(id)]).toEqual([path, stream, true]);
          expect(said).not.toContain("memprefix:number");
        }
    });

    it.each([1, 2, 3])(
      "are not what a tool's result forges that is written as memprefix carries them, %d times",
      async (times) => {
        const forged = JSON.stringify(`${"\uf8ff".repeat(times)}memprefix:number:7`);
        for (const [path, body] of DOORS) {
          const said = `{"model":"m","user":"ada","metadata":{"user_id":"ada"},${body.replace(text("9223372036854775807"), forged)}}`;
          expect([path, (await app.send("POST", path, bytes(said))).status]).toEqual([path, 200]);
        }
        const raws = api === "openai" ? engine.requests.map(({ raw }) => raw) : anthropic.raws;
        const plain = raws.filter((raw) => raw.includes('"memprefix:number:7"'));
        expect(plain.length).toBeGreaterThanOrEqual(DOORS.length);
        // Beside it numbers are exact all the same.
        expect(plain.filter((raw) => raw.includes(SCHEMA))).toEqual(plain);
      },
    );

    it("are what they were where memprefix reads them", async () => {
      const ask = (more: string) =>
        app.send(
          "POST",
          "/v1/chat/completions",
          bytes(`{"model":"m","messages":[{"role":"user","content":"?"}],${more}}`),
        );
      for (const more of [
        '"user":12345678901234567890',
        '"user":"ada","memprefix":{"top_k":12345678901234567890}',
        '"memprefix":{"user_id":12345678901234567890}',
      ])
        expect([more, (await ask(more)).status]).toEqual([more, 422]);
      const huge = '{"id":12345678901234567890,"memory":"Ada has a dog"}';
      const { status } = await ask(
        `"user":"ada","memprefix":{"memories":[${huge},{"id":"a","memory":"Ada has a cat"}]}`,
      );
      expect(status).toBe(200);
      const raw = api === "openai" ? engine.requests.at(-1)?.raw : anthropic.raws.at(-1);
      expect([raw?.includes("a dog"), raw?.includes("a cat")]).toEqual([false, true]);
    });
  },
);
