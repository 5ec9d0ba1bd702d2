import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { columnsHolding, filesHolding, rowCounts } from "./stored-rows.js";

const SECRET = "Ada hides the key under the third flower pot";
const memories = [{ id: "m-1", memory: SECRET }];
const TEXTS = [
  SECRET,
  "Where is Ada's key?",
  "Be as brief as Ada.",
  "ada@example.org",
  "talk-of-ada",
  "request-of-ada",
];

describe("DELETE /users/{user_id}", () => {
  const app = servedApp();
  const composed = {
    user_id: "ada@example.org",
    conversation_id: "talk-of-ada",
    request_id: "request-of-ada",
    messages: [{ role: "user", content: "Where is Ada's key?" }],
    system: "Be as brief as Ada.",
    memories,
  };

  it("leaves nothing of the user, with any agent, in any table or byte of the database", async () => {
    // How many deletions there were is counted, without a name.
    const { __drizzle_migrations, sqlite_sequence, deletions, ...empty } = rowCounts(app.database);
    await app.compose(composed);
    await app.compose({ ...composed, agent_id: "planner" });
    await app.send("DELETE", "/users/ada%40example.org/memories/m-2");
    const exchange = await app.send("DELETE", "/users/ada%40example.org");
    expect(JSON.parse(exchange.text)).toEqual({ user_id: "ada@example.org", scopes: 2 });
    expect(rowCounts(app.database)).toMatchObject(empty);
    expect(TEXTS.flatMap((text) => columnsHolding(app.database, text))).toEqual([]);
    expect(TEXTS.flatMap((text) => filesHolding(app.database, text))).toEqual([]);
  });

  it("lets the user come back as one that was never seen", async () => {
    const first = await app.send("POST", "/compose", composed);
    await app.compose({ ...composed, request_id: "another", memories: [{ id: "m-2", memory: "Ada has a dog" }] });
    await app.send("DELETE", "/users/ada%40example.org");
    expect(await app.send("POST", "/compose", composed)).toEqual(first);
  });

  it("says that there was nothing to forget", async () => {
    expect(JSON.parse((await app.send("DELETE", "/users/nobody")).text)).toEqual({ user_id: "nobody", scopes: 0 });
  });
});
