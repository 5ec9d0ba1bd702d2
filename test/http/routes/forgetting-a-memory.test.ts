import { describe, expect, it } from "vitest";
import { checkDatabase } from "../../store/checked-database.js";
import { type Composed, servedApp } from "../server/served-app.js";
import { columnsHolding, filesHolding } from "./stored-rows.js";

const SECRET = 'Ada hides the "key" under the third\nflower pot';
const PIECES = [SECRET, "third", "flower pot"];
const secret = { id: "m-secret", memory: SECRET };
const tea = { id: "m-tea", memory: "Ada drinks green tea" };
const paris = { id: "m-paris", memory: "Ada lives in Paris" };
const asked = { role: "user", content: "Where is it?" };
const answered = { role: "assistant", content: "I must not say." };
const next = { role: "user", content: "And what does Ada drink?" };

describe("DELETE /users/{user_id}/memories/{memory_id}", () => {
  const app = servedApp({ environment: { MEMPREFIX_RETENTION: "keep" } });
  const ada = { user_id: "ada" };
  const forget = async (path = "/users/ada/memories/m-secret") => {
    const exchange = await app.send("DELETE", path);
    expect(exchange.status).toBe(200);
    return JSON.parse(exchange.text) as unknown;
  };
  const first = { ...ada, conversation_id: "c", request_id: "r-1", messages: [asked], memories: [tea, secret, paris] };
  const holds = (answer: Composed) => PIECES.filter((piece) => JSON.stringify(answer).includes(piece));
  const leftIn = () =>
    PIECES.flatMap((piece) => [...columnsHolding(app.database, piece), ...filesHolding(app.database, piece)]);

  it("takes the text out of every table and every byte of the database", async () => {
    await app.compose(first);
    await app.compose({ ...ada, query: "Where?", memories: [secret] });
    await app.compose({ ...ada, agent_id: "planner", query: "Where?", memories: [secret] });
    expect(leftIn()).not.toEqual([]);
    expect(await forget()).toEqual({
      memory_id: "m-secret",
      labels: [2, 1],
      kept_by: [],
      conversations: [{ agent_id: null, conversation_id: "c" }],
      prompts: 3,
      responses: [],
      engine_cache: { may_hold: true, until: null },
      files: "erased",
      deleted_from_source: null,
    });
    expect(leftIn()).toEqual([]);
  });

  it("says that an engine may hold it where its prompts are gone already", async () => {
    await app.compose(first);
    const engine_cache = { may_hold: true, until: null };
    expect(await forget()).toMatchObject({ prompts: 1, engine_cache });
    expect(await forget()).toMatchObject({ prompts: 0, engine_cache });
    expect(await forget("/users/ada/memories/m-tea")).toMatchObject({ prompts: 0, engine_cache });
    expect(await forget("/users/ada/memories/m-new")).toMatchObject({ engine_cache: { may_hold: false } });
  });

  it("composes anew under an id whose answer held it, and leaves a sound database", async () => {
    const asking = { ...ada, request_id: "r", query: `Is it true? ${SECRET}`, memories: [tea, secret] };
    await app.compose(asking);
    await forget();
    expect((await app.compose(asking)).blocks.map(({ memory_id }) => memory_id)).toEqual(["m-tea"]);
    expect((await checkDatabase(app.database)).findings).toEqual([]);
  });

  it("ends a conversation before it was given, which then starts afresh from what the client sends", async () => {
    const talk = { ...ada, conversation_id: "c" };
    const before = await app.compose({ ...talk, messages: [asked], memories: [tea] });
    const second = [asked, answered, next];
    await app.compose({ ...talk, messages: second, memories: [secret, paris] });
    expect(await forget()).toMatchObject({ conversations: [{ conversation_id: "c" }], prompts: 1 });
    const third = [...second, { role: "assistant", content: "Tea." }, { role: "user", content: "Where?" }];
    const answer = await app.compose({ ...talk, messages: third, memories: [tea, paris] });
    expect(holds(answer)).toEqual([]);
    // The turns before the cut are still cached.
    expect(answer.messages[0]).toEqual(before.messages[0]);
    expect(answer.blocks).toMatchObject([
      { memory_id: "m-paris", placement: "new" },
      { memory_id: "m-tea", placement: "earlier_turn" },
    ]);
    expect(answer.plan).toMatchObject({ fresh_start: true, fresh_start_reason: "memory_forgotten" });
  });

  it("never sends it again, though the caller lists it, with its old text or a new one", async () => {
    await app.compose(first);
    await forget();
    for (const memory of [SECRET, "Ada hides the key under the third flower pot"]) {
      const answer = await app.compose({ ...ada, query: "Where?", memories: [{ ...secret, memory }, tea] });
      expect(holds(answer)).toEqual([]);
      expect(answer.blocks.map(({ memory_id }) => memory_id)).toEqual(["m-tea"]);
      expect(answer.warnings).toMatchObject([{ code: "memory_forgotten", memory_ids: ["m-secret"] }]);
      expect(leftIn()).toEqual([]);
    }
  });
});
