import { describe, expect, it } from "vitest";
import { MemorySourceError } from "../../../src/memory/memory-source.js";
import { problemOf, servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { filesHolding } from "./stored-rows.js";

const linesIn = (prompt: { readonly messages: readonly object[] }) =>
  String((prompt.messages.at(-1) as { readonly content?: unknown } | undefined)?.content)
    .split("\n")
    .filter((line) => line.startsWith("- "));

describe("dates", () => {
  const source = answeringSource([]);
  const app = servedApp({
    source: () => ({
      ...source,
      search: async () => {
        if (source.failure !== null) throw source.failure;
        return [{ id: "m", text: "Likes tea.", createdAt: "2023-05-08T23:30:00Z" } as never];
      },
    }),
  });
  const ada = { user_id: "ada", query: "Which tea?" };
  const tea = { id: "m", memory: "Likes tea.", created_at: "2023-05-08T23:30:00Z" };

  it("stand before what is given, found, or known while the source fails, where they are wanted", async () => {
    expect(linesIn(await app.compose({ ...ada, memories: [tea] }))).toEqual(["- Likes tea."]);
    expect(linesIn(await app.compose({ ...ada, memories: [tea], dates: true }))).toEqual(["- 2023-05-08: Likes tea."]);
    expect(linesIn(await app.compose({ ...ada, dates: true }))).toEqual(["- 2023-05-08: Likes tea."]);
    source.failure = new MemorySourceError("answering", { kind: "unreachable", cause: "ECONNREFUSED" });
    try {
      expect(linesIn(await app.compose({ ...ada, dates: true }))).toEqual(["- 2023-05-08: Likes tea."]);
    } finally {
      source.failure = null;
    }
    expect(problemOf(await app.send("POST", "/compose", { ...ada, dates: "yes" }))).toMatchObject({ status: 422 });
  });

  it("count in the bound of a text, and in a repeated request", async () => {
    const long = { ...tea, memory: "tea ".repeat(50_000) };
    const { warnings, messages } = await app.compose({ ...ada, memories: [long], dates: true });
    expect(warnings).toEqual([{ code: "memory_cut", message: expect.any(String), memory_ids: ["m"] }]);
    const [line = ""] = linesIn({ messages });
    expect(line.length).toBeLessThanOrEqual("- ".length + 100_000);
    expect(line).toMatch(/^- 2023-05-08: tea .*\[…\]$/);
    const dated = { ...ada, request_id: "r-1", memories: [tea], dates: true };
    const first = await app.compose(dated);
    expect(await app.compose(dated)).toEqual(first);
    const bare = await app.compose({ ...dated, dates: false });
    expect(bare.warnings.map(({ code }) => code)).toEqual(["request_id_reused"]);
  });

  it("hide no message that says a memory from forgetting", async () => {
    const secret = { ...tea, memory: "Ada hides the moonflower key." };
    await app.compose({ ...ada, memories: [secret], dates: true });
    const messages = [{ role: "user", content: `So ${secret.memory} True?` }];
    await app.compose({ user_id: "ada", messages, memories: [] });
    expect(filesHolding(app.database, "moonflower")).not.toEqual([]);
    expect((await app.send("DELETE", "/users/ada/memories/m")).status).toBe(200);
    expect(filesHolding(app.database, "moonflower")).toEqual([]);
  });
});
