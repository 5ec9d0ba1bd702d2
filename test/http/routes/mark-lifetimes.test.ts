import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { markProblem } from "../../engines/adapters/published-marks.js";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { anthropicServer } from "./anthropic-server.js";

/** Its shortest cached prefix is not known, so that short prompts have marks, too. */
const MODEL = "claude-opus-5-5";
const TEA = "Ada drinks green tea";
const HOUR = { cache_control: { type: "ephemeral", ttl: "1h" } };
const FIVE = { cache_control: { type: "ephemeral", ttl: "5m" } };
const PLAIN = { cache_control: { type: "ephemeral" } };
const text = (said: string, mark: object = {}) => ({ type: "text", text: said, ...mark });
const user = (...content: object[]) => ({ role: "user", content });
const tool = (name: string, mark: object = {}) => ({ name, input_schema: { type: "object" }, ...mark });
const called = (mark: object = {}) => ({
  role: "assistant",
  content: [text("Let me see."), { type: "tool_use", id: "t1", name: "brew", input: {}, ...mark }],
});
const result = (mark: object = {}) => ({ type: "tool_result", tool_use_id: "t1", content: "Done.", ...mark });

describe("marks with lifetimes by Anthropic's API", () => {
  const anthropic = anthropicServer();
  const source = answeringSource([TEA]);
  const app = servedApp({
    source: () => source,
    upstream: anthropic,
    environment: { MEMPREFIX_ENGINE_FAMILY: "anthropic" },
  });
  const send = (path: string, body: object, conversation: string) =>
    app.send("POST", path, { model: MODEL, ...body, memprefix: { user_id: "ada", conversation_id: conversation } });

  it("take five minutes where the client has none, and what the place allows where it has", async () => {
    const question = (mark: object = {}) => [user(text("Tea?", mark))];
    await send("/v1/messages", { max_tokens: 9, system: "Brief.", messages: question() }, "none");
    expect(new Set(lifetimesIn(anthropic.calls.at(-1)?.body))).toEqual(new Set(["5m"]));
    await send("/v1/messages", { max_tokens: 9, system: [text("Brief.", HOUR)], messages: question(HOUR) }, "hours");
    expect(lifetimesIn(anthropic.calls.at(-1)?.body)).toEqual(["1h", "1h", "1h"]);
    await send("/v1/messages", { max_tokens: 9, system: [text("Brief.", FIVE)], messages: question() }, "minutes");
    expect(new Set(lifetimesIn(anthropic.calls.at(-1)?.body))).toEqual(new Set(["5m"]));
  });

  it("are taken in every turn where the client's mark moves to the newest message, and where it cut its history", async () => {
    const answer = { role: "assistant", content: [text("Green.")] };
    const history: object[] = [];
    for (let turn = 0; turn < 6; turn++) {
      const plain = user(text(`Tea in ${turn} words?`));
      const marked = user(text(`Tea in ${turn} words?`, HOUR));
      const sent = turn < 4 ? [...history, marked] : [...history.slice(-3), marked];
      const body = { max_tokens: 9, system: [text("Brief.", HOUR)], messages: sent };
      expect((await send("/v1/messages", { ...body }, "moving")).status).toBe(200);
      history.push(turn % 2 === 0 ? plain : marked, answer);
    }
  });

  it("are taken in chat completions and Responses for a gateway to Anthropic, on parts, messages, calls, tools and at the top", async () => {
    const brew = { type: "function", function: { name: "brew", parameters: { type: "object" } } };
    const call = { id: "t1", type: "function", function: { name: "brew", arguments: "{}" } };
    const part = (said: string) => ({ type: "input_text", text: said, ...HOUR });
    const saying = (role: string) => [
      { role, content: "Brief.", ...HOUR },
      { role: "user", content: "Tea?", ...HOUR },
    ];
    const chats: object[] = [
      { messages: [{ role: "system", content: [text("Brief.", HOUR)] }, user(text("?"), text("Tea?", HOUR))] },
      { messages: saying("system") },
      { ...HOUR, messages: [user(text("Tea?"))] },
      { tools: [{ ...brew, ...HOUR }], messages: [user(text("Tea?", HOUR))] },
      { tools: [{ ...brew, function: { ...brew.function, ...FIVE } }], messages: [user(text("Tea?"))] },
      {
        messages: [
          user(text("Tea?")),
          {
            role: "assistant",
            content: null,
            tool_calls: [1, 2, 3, 4].map((n) => ({ ...call, id: `t${n}`, ...HOUR })),
          },
          ...[1, 2, 3, 4].map((n) => ({ role: "tool", tool_call_id: `t${n}`, content: "Done." })),
        ],
      },
      {
        messages: [
          user(text("Tea?")),
          { role: "assistant", content: "", tool_calls: [call] },
          { role: "tool", tool_call_id: "t1", content: [text("Done.", HOUR)] },
        ],
      },
    ];
    const items: object[] = [
      {
        input: [
          { role: "system", content: [part("Brief.")] },
          { role: "user", content: [part("Tea?")] },
        ],
      },
      { ...HOUR, instructions: "Brief.", input: "Tea?" },
      {
        tools: [{ type: "function", ...brew.function, ...HOUR }],
        input: [{ role: "user", content: [part("Tea?")] }],
      },
      { input: saying("developer") },
      {
        input: [
          { role: "user", content: "Tea?" },
          { type: "function_call", call_id: "t1", name: "brew", arguments: "{}", ...HOUR },
          { type: "function_call_output", call_id: "t1", output: "Done.", ...HOUR },
        ],
      },
    ];
    const doors = [
      ...chats.map((body) => ["/v1/chat/completions", body] as const),
      ...items.map((body) => ["/v1/responses", body] as const),
    ];
    for (const [at, [path, body]] of doors.entries()) {
      const { status, text: said } = await send(path, body, `door ${at}`);
      expect({ status, refusals: anthropic.refusals }, said).toEqual({ status: 200, refusals: [] });
      const sent = anthropic.calls.at(-1)?.body;
      expect(JSON.stringify(sent)).toContain(TEA);
      const hours = (of: unknown) => lifetimesIn(of).filter((ttl) => ttl === "1h").length;
      expect(hours(sent), JSON.stringify(body)).toBeGreaterThanOrEqual(Math.min(4, hours(body)));
    }
  });

  it("that the provider refuses are the client's to hear of", async () => {
    const body = { max_tokens: 9, system: [text("Brief.", FIVE)], messages: [user(text("Tea?", HOUR))] };
    const { status, text: said } = await send("/v1/messages", body, "refused");
    expect([status, said]).toEqual([400, expect.stringContaining("must not come after")]);
    expect(anthropic.refusals.splice(0)).toHaveLength(1);
  });

  it("are taken wherever a client puts them", async () => {
    await fc.assert(
      fc.asyncProperty(anyMarked, fc.uuid(), async (body, conversation) => {
        fc.pre(markProblem(body) === null);
        expect((await send("/v1/messages", body, conversation)).status).toBe(200);
      }),
      { numRuns: 60 },
    );
    const composed = anthropic.calls.filter(({ body }) => JSON.stringify(body).includes(TEA));
    expect(composed.length).toBeGreaterThan(anthropic.calls.length / 2);
  });

  it("are not sent again with what a client has cut and is put back in front: the client moved them", async () => {
    const answer = { role: "assistant", content: [text("Green.")] };
    const history: object[] = [];
    let putBack = 0;
    for (let turn = 0; turn < 8; turn++) {
      const said = `Tea in ${turn} words, and with what, and when would that be best of all?`;
      const sent = [...history.slice(-4), user(text(said, HOUR))];
      const body = { model: MODEL, max_tokens: 9, system: [text("Brief.", HOUR)], messages: sent };
      const exchange = await app.send("POST", "/v1/messages", {
        ...body,
        memprefix: { user_id: "ada", conversation_id: "cut", history: "extended" },
      });
      expect([turn, exchange.status, exchange.text]).toEqual([turn, 200, exchange.text]);
      putBack = Math.max(putBack, (anthropic.calls.at(-1)?.body.messages.length ?? 0) - sent.length);
      history.push(user(text(said, HOUR)), answer);
    }
    expect(putBack).toBeGreaterThan(0);
  });
});

const mark = fc.constantFrom<object>({}, {}, {}, PLAIN, FIVE, HOUR, HOUR);
const block = fc.oneof(
  fc.tuple(fc.constantFrom("Tea?", "Which?", "Long ".repeat(50)), mark).map(([said, of]) => text(said, of)),
  mark.map((of) => ({ type: "image", source: { type: "url", url: "https://example.org/a.png" }, ...of })),
);
const turn = fc.oneof(
  fc
    .tuple(fc.array(block, { minLength: 1, maxLength: 3 }), mark)
    .map(([said, of]) => [user(...said), { role: "assistant", content: [text("Green.", of)] }]),
  fc
    .tuple(mark, mark, mark)
    .map(([of, inside, behind]) => [
      user(text("Brew.")),
      called(of),
      user({ ...result(behind), content: [text("Done.", inside)] }),
      { role: "assistant", content: [text("Done.")] },
    ]),
  fc
    .tuple(mark, mark)
    .map(([of, inside]) => [
      user(text("Why?", of)),
      { role: "system", content: [text("Be brief.", inside)] },
      { role: "assistant", content: [{ type: "thinking", thinking: "Hm.", signature: "s" }, text("So.")] },
    ]),
);
/** Requests with marks anywhere; some are refused for themselves, which the property leaves out. */
const anyMarked = fc
  .record({
    automatic: fc.constantFrom<object>({}, {}, PLAIN, HOUR),
    tools: fc.array(mark, { maxLength: 3 }),
    system: fc.array(mark, { maxLength: 2 }),
    turns: fc.array(turn, { maxLength: 4 }),
    last: fc.array(block, { minLength: 1, maxLength: 3 }),
  })
  .map(({ automatic, tools, system, turns, last }) => ({
    max_tokens: 9,
    ...automatic,
    tools: tools.map((of, at) => tool(`t${at}`, of)),
    ...(system.length === 0 ? {} : { system: system.map((of, at) => text(`Rule ${at}.`, of)) }),
    messages: [...turns.flat(), user(...last)],
  }));

/** Lifetimes of all marks, in the order in which the provider reads them. */
function lifetimesIn(body: unknown): string[] {
  const { tools, system, messages, input, cache_control } = body as Record<string, unknown>;
  const found: string[] = [];
  const walk = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, inner] of Object.entries(value)) if (name !== "cache_control") walk(inner);
    const own = (value as { cache_control?: { ttl?: string } | null }).cache_control;
    if (own != null) found.push(own.ttl ?? "5m");
  };
  for (const value of [tools, system, messages, input, { cache_control }]) walk(value);
  return found;
}
