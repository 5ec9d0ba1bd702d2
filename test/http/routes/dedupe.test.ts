import { describe, expect, it } from "vitest";
import { checkDatabase } from "../../../src/store/check/check-database.js";
import { problemOf, servedApp } from "../server/served-app.js";

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

  it("keeps to it in conversations, in batches and in prompts that are too long", async () => {
    const chat = { user_id: "bob", conversation_id: "c" };
    const first = await app.compose({ ...chat, messages: [{ role: "user", content: "Who?" }], memories: [both] });
    const messages = [
      { role: "user", content: "Who?" },
      { role: "assistant", content: "Ana." },
      { role: "user", content: "And?" },
    ];
    const second = await app.compose({ ...chat, messages, memories: [again, tea] });
    expect(second.messages[0]).toEqual(first.messages[0]);
    expect(second.messages.at(-1)?.content).toBe("And?");
    const requests = [1, 2].map((n) => ({ user_id: "cem", query: `Who ${n}?`, memories: [tea, again, both] }));
    const { text } = await app.send("POST", "/compose/batch", { requests });
    expect(text.match(/Ana likes tea/gi)).toHaveLength(2);
    const tight = await app.compose({ ...ada, memories: [tea, both], max_prompt_tokens: 20 });
    expect(tight.warnings.map(({ code }) => code)).toContain("memory_left_out");
  });
});

describe("MEMSTEM_DEDUPE", () => {
  const app = servedApp({ environment: { MEMSTEM_DEDUPE: "exact" } });

  it("holds where a request does not say otherwise", async () => {
    const asked = { user_id: "ada", query: "Who?", memories: [tea, again] };
    expect((await app.compose(asked)).blocks.map(({ label }) => label)).toEqual([1, 2]);
    expect((await app.compose({ ...asked, dedupe: "contained" })).blocks.map(({ label }) => label)).toEqual([1, 1]);
  });
});
