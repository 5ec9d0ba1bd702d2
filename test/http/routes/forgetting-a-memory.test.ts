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
    expect(await forget()).toEqual({ memory_id: "m-secret", labels: [2, 1], responses: [], deleted_from_source: null });
    expect(leftIn()).toEqual([]);
  });

  it("takes out what the application itself said that quotes it", async () => {
    await app.compose({ ...first, system: `You know: ${SECRET}` });
    const quoting = [asked, { role: "assistant", content: `It says: ${SECRET}!` }, next];
    await app.compose({ ...ada, conversation_id: "c", messages: quoting, memories: [tea] });
    await forget();
    expect(leftIn()).toEqual([]);
  });

  it("composes anew under an id whose answer quoted it, and leaves a sound database", async () => {
    const asking = { ...ada, request_id: "r", query: `Is it true? ${SECRET}`, memories: [tea, secret] };
    await app.compose(asking);
    await forget();
    expect((await app.compose(asking)).blocks.map(({ memory_id }) => memory_id)).toEqual(["m-tea"]);
    expect((await checkDatabase(app.database)).findings).toEqual([]);
  });

  it("no longer replays it in a conversation, and keeps the rest of what was given", async () => {
    await app.compose(first);
    await forget();
    const answer = await app.compose({
      ...ada,
      conversation_id: "c",
      messages: [asked, answered, next],
      memories: [tea],
    });
    expect(holds(answer)).toEqual([]);
    expect(answer.messages[0]?.["content"]).toContain(tea.memory);
    expect(answer.messages[0]?.["content"]).toContain(paris.memory);
    expect(answer.blocks).toMatchObject([{ memory_id: "m-tea", placement: "earlier_turn" }]);
  });

  it("takes it out of a history that comes back with the injected text in it", async () => {
    const { messages } = await app.compose(first);
    await forget();
    const history = [...messages, answered, next];
    const answer = await app.compose({ ...ada, conversation_id: "c", messages: history, memories: [tea] });
    expect(holds(answer)).toEqual([]);
    expect(leftIn()).toEqual([]);
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

  it("never sends it to an agent that comes to the user later", async () => {
    await app.compose(first);
    await app.send("GET", "/users/ada/index?agent_id=late");
    await forget();
    for (const agent_id of ["late", "later"]) {
      const answer = await app.compose({ ...ada, agent_id, query: "Where?", memories: [secret, tea] });
      expect(holds(answer)).toEqual([]);
    }
  });

  it("never sends a memory that was forgotten before it was ever seen", async () => {
    expect(await forget("/users/ada/memories/m-secret")).toMatchObject({ labels: [] });
    expect(holds(await app.compose(first))).toEqual([]);
    expect(leftIn()).toEqual([]);
  });

  it("repeats a request without it", async () => {
    const before = await app.compose(first);
    await forget();
    const again = await app.compose(first);
    expect(holds(again)).toEqual([]);
    expect(again.blocks).toEqual(before.blocks.filter(({ memory_id }) => memory_id !== "m-secret"));
    expect(await app.compose(first)).toEqual(again);
  });

  it("keeps a text that another memory has too", async () => {
    await app.compose({ ...ada, query: "Where?", memories: [secret, { ...secret, id: "m-twin" }] });
    expect(await forget()).toMatchObject({ labels: [] });
    const answer = await app.compose({ ...ada, query: "Where?", memories: [{ ...secret, id: "m-twin" }] });
    expect(answer.blocks).toMatchObject([{ label: 1, memory_id: "m-twin", placement: "cached_prefix" }]);
    await forget("/users/ada/memories/m-twin");
    expect(leftIn()).toEqual([]);
  });

  it("forgets every text that the memory ever had", async () => {
    await app.compose(first);
    await app.compose({
      ...ada,
      query: "Where?",
      memories: [{ ...secret, memory: "Ada hides it in the third drawer" }],
    });
    await forget();
    expect(leftIn()).toEqual([]);
  });

  it("leaves another user's memory of the same id alone", async () => {
    await app.compose(first);
    const bob = { ...first, user_id: "bob" };
    const before = await app.send("POST", "/compose", bob);
    await forget();
    expect(await app.send("POST", "/compose", bob)).toEqual(before);
    expect(columnsHolding(app.database, SECRET)).toEqual(["journal.changes"]);
  });

  it("gives no label of a forgotten text to another text", async () => {
    await app.compose(first);
    await forget();
    const answer = await app.compose({ ...ada, query: "Where?", memories: [{ id: "m-new", memory: "Ada has a dog" }] });
    expect(answer.blocks).toMatchObject([{ label: 4, memory_id: "m-new" }]);
  });
});
