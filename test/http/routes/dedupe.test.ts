import { describe, expect, it } from "vitest";
import { checkDatabase } from "../../store/checked-database.js";
import { problemOf, servedApp } from "../server/served-app.js";
import { clientOf } from "./chat-client.js";
import { openAiEngine } from "./openai-engine.js";

const tea = { id: "tea", memory: "Ana likes tea." };
const again = { id: "again", memory: "ana likes tea" };
const both = { id: "both", memory: "Ana likes tea. She lives in Porto." };

describe("dedupe", () => {
  const app = servedApp();
  const ada = { user_id: "ada", query: "Who?" };

  it("gives a text once that another memory says too, under its label, and says which", async () => {
    const answer = await app.compose({ ...ada, request_id: "r-1", memories: [tea, again, both] });
    expect(answer.messages.at(-1)?.content).toBe(
      "<memories>\n- Ana likes tea. She lives in Porto.\n</memories>\n\nWho?",
    );
    expect(answer.blocks.map(({ memory_id, label }) => [memory_id, label])).toEqual([
      ["tea", 3],
      ["again", 3],
      ["both", 3],
    ]);
    expect(answer.warnings).toEqual([
      { code: "contained_text", message: expect.any(String), memory_ids: ["tea", "again"] },
    ]);
    expect(await app.compose({ ...ada, request_id: "r-1", memories: [tea, again, both] })).toEqual(answer);
    expect((await checkDatabase(app.database)).findings).toEqual([]);
  });

  it("gives all but equal texts where it is exact", async () => {
    const answer = await app.compose({ ...ada, memories: [tea, again, both], dedupe: "exact" });
    expect(answer.blocks.map(({ label }) => label)).toEqual([1, 2, 3]);
    expect(answer.warnings).toEqual([]);
    expect(problemOf(await app.send("POST", "/compose", { ...ada, dedupe: "fuzzy" }))).toMatchObject({ status: 422 });
  });

  it("names a memory that the question says, which is in no block", async () => {
    const answer = await app.compose({ user_id: "ada", query: "Ana likes tea. Which one?", memories: [tea] });
    expect(answer.messages).toEqual([{ role: "user", content: "Ana likes tea. Which one?" }]);
    expect(answer.blocks).toEqual([]);
    expect(answer.warnings).toEqual([{ code: "memory_in_messages", message: expect.any(String), memory_ids: ["tea"] }]);
  });
});

describe("dedupe: spans", () => {
  const engine = openAiEngine();
  const app = servedApp({ upstream: engine, environment: { MEMPREFIX_SOURCE: "none" } });
  const page = Array.from({ length: 40 }, (_, at) => `Line ${at} of the page says ${at * at}.`).join("\n");
  const call = (id: string) => ({ id, type: "function" as const, function: { name: "read", arguments: "{}" } });
  const reading = (id: string, content: string) => [
    { role: "assistant" as const, content: null, tool_calls: [call(id)] },
    { role: "tool" as const, tool_call_id: id, content },
  ];
  const history = [
    { role: "user" as const, content: "Read it." },
    ...reading("c1", page),
    ...reading("c2", `Again:\n${page}`),
  ];
  const reference =
    'Again:\n<same-as-above>from "Line 0 of the page says 0. Line 1 of" to "1444. Line 39 of the page says 1521."</same-as-above>';
  const asked = { user_id: "ada", conversation_id: "c", memories: [tea], dedupe: "spans" };

  it("is how results stand in prompts, which go on as they were", async () => {
    const first = await app.compose({ ...asked, messages: history });
    expect(first.messages[4]).toEqual({ role: "tool", tool_call_id: "c2", content: reference });
    expect(first.messages[2]).toEqual(history[2]);
    const said = { role: "assistant", content: "Read." };
    const third = { role: "user", content: "Thanks. And?" };
    const second = await app.compose({ ...asked, messages: [...history, said, third] });
    expect(second.messages.slice(0, first.messages.length)).toEqual(first.messages);
    expect(second.plan.expected_cached_tokens).toBe(first.plan.total_tokens);
    expect(second.plan.total_tokens).toBeLessThan(1_000);
    // A client that reads less now has nothing of before in its prompt.
    const [question, ...others] = history;
    const redacted = [question, ...others.slice(0, 1), { ...others[1], content: "Redacted." }, ...others.slice(2)];
    expect((await app.compose({ ...asked, messages: redacted })).messages[4]).toEqual(history[4]);
  });

  it("is not what a prompt refers to that has no room for it", async () => {
    const again = [
      { role: "assistant", content: "Read." },
      { role: "user", content: "Again." },
    ];
    const messages = [...history.slice(0, 3), ...again, ...reading("c3", page.slice(0, 900))];
    const cut = { ...asked, conversation_id: "cut", messages };
    const whole = await app.compose(cut);
    expect(JSON.stringify(whole.messages)).toContain("<same-as-above>");
    const { messages: sent } = await app.compose({ ...cut, max_prompt_tokens: 560 });
    expect(sent.length).toBeLessThan(whole.messages.length);
    expect(sent.at(-1)?.content).toBe(page.slice(0, 900));
  });

  it("is what an engine is sent, and nothing of the kind where it is not wanted", async () => {
    const client = clientOf(app, { "x-memprefix-user": "ada" });
    const chat = { model: "stub-1", messages: history };
    await client.chat.completions.create({ ...chat, memprefix: { dedupe: "spans" } } as typeof chat);
    await client.chat.completions.create(chat);
    const sent = engine.requests.map(({ raw }) =>
      JSON.parse(raw).messages.filter(({ role }: { role: string }) => role === "tool"),
    );
    expect(sent).toEqual([
      [history[2], { ...history[4], content: reference }],
      [history[2], history[4]],
    ]);
  });
});
