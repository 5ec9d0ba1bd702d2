/*
 * Attacked: numbers that JavaScript has not, as Python's clients and 64-bit ids have them, and what other JSON libraries write otherwise, through
 * every API and in what `/compose` answers. Broke: all of them came rounded or written anew, in calls of tools, in schemas and as seeds, also
 * where nothing was composed. Held: arguments of calls, where they are text. `byte-for-byte.test.ts` has the rest.
 */
import { describe, expect, it } from "vitest";
import { answeringSource } from "../http/routes/answering-source.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { servedApp } from "../http/server/served-app.js";

const IDS = ["9223372036854775807", "-12345678901234567890", "9007199254740993"];
/** An object with all of them, as JSON in which nothing else is a number. */
const INPUT = `{"ids":[${IDS.join()}],"said":"9223372036854775807 \\"1\\"","safe":"\\\\"}`;
const text = (json: string) => JSON.stringify(json);
const RESULT = "9223372036854775807";

/** A history with a call in the forms of other APIs. */
const FORMS: readonly (readonly [api: string, messages: string])[] = [
  [
    "Messages",
    `[{"role":"user","content":"Which?"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"find","input":${INPUT}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"${RESULT}"},{"type":"text","text":"And?"}]}]`,
  ],
  [
    "Responses",
    `[{"role":"user","content":"Which?"},{"type":"function_call","call_id":"c","name":"find","arguments":${text(INPUT)}},{"type":"function_call_output","call_id":"c","output":"${RESULT}"},{"role":"user","content":"And?"}]`,
  ],
];
const bytes = (json: string) => new TextEncoder().encode(json);

/** What a client may have written anywhere, as no other library would. */
const ODD = `"of_the_client" : {"b":1.0,"a" :1e3,"é":"caf\\u00e9 \\/","n":null}`;

describe("numbers that JavaScript has not, in prompts that memprefix composes for their sender,", () => {
  const app = servedApp({ source: () => answeringSource(["Ada drinks green tea"]) });
  const messages = `[{"role":"user","content":"Wh\\u00efch?"},{"role":"assistant","content":"So.","found":${INPUT},${ODD}},{"role":"user","content":"And?"}]`;
  const asked = (id: string, more = "") =>
    `{"user_id":"ada","conversation_id":"c","request_id":"${id}","messages":${messages}${more}}`;
  const sent = (body: string, path = "/compose") => app.send("POST", path, bytes(body));

  it("come back as they were said, the second time too", async () => {
    for (const id of ["one", "one", "two"]) {
      const { status, text: said } = await sent(asked(id));
      expect(status).toBe(200);
      for (const part of [INPUT, ODD, '"Wh\\u00efch?"', "green tea"])
        expect([id, part, said]).toEqual([id, part, expect.stringContaining(part)]);
    }
  });

  it.each(FORMS)("come back in the form of another API: %s", async (api, list) => {
    const { status, text: said } = await sent(`{"user_id":"ada","request_id":"${api}","messages":${list}}`);
    expect([status, said]).toEqual([200, expect.stringContaining("green tea")]);
    expect(said.includes(INPUT) || said.includes(text(INPUT))).toBe(true);
  });

  it("are what they were where memprefix reads them", async () => {
    const huge = ',"memory_budget_tokens":12345678901234567890';
    expect((await sent(asked("four", huge))).status).toBe(422);
    const batch = await sent(`{"requests":[${asked("five", huge)},${asked("six")}]}`, "/compose/batch");
    expect(JSON.parse(batch.text)).toMatchObject({ end: { composed: 1, failed: 1 } });
    expect((await sent('{"requests":[],"planner":12345678901234567890}', "/compose/batch")).status).toBe(422);
  });
});

describe("numbers that JavaScript has not, in front of an engine,", () => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource(["Ada drinks green tea"]), upstream: engine });

  it("are what they were where memprefix reads them", async () => {
    const ask = (more: string) => {
      const body = `{"model":"m","messages":[{"role":"user","content":"?"}],${more}}`;
      return app.send("POST", "/v1/chat/completions", bytes(body));
    };
    for (const more of [
      '"user":12345678901234567890',
      '"user":"ada","memprefix":{"top_k":12345678901234567890}',
      '"memprefix":{"user_id":12345678901234567890}',
    ])
      expect([more, (await ask(more)).status]).toEqual([more, 422]);
    const huge = '{"id":12345678901234567890,"memory":"Ada has a dog"}';
    const { status } = await ask(`"user":"ada","memprefix":{"memories":[${huge},{"id":"a","memory":"Ada has a cat"}]}`);
    expect(status).toBe(200);
    const raw = engine.requests.at(-1)?.raw;
    expect([raw?.includes("a dog"), raw?.includes("a cat")]).toEqual([false, true]);
  });
});
