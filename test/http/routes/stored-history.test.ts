import { describe, expect, it } from "vitest";
import { problemOf, servedApp } from "../server/served-app.js";

const TURNS = 12;
const question = (turn: number) => ({ role: "user", content: `Question ${turn}?` });
const answer = (turn: number) => ({ role: "assistant", content: `Answer ${turn}.` });
const facts = (turn: number) => [0, 1, 2].map((n) => ({ id: `m${turn + n}`, memory: `Ada's fact ${turn + n}.` }));

describe("a conversation whose client sends only what is new", () => {
  const app = servedApp();
  const stored = { user_id: "ada", conversation_id: "stored", history: "stored" };

  /** What this turn adds: the answer to the last question, and the next one. */
  const added = (turn: number) => (turn === 0 ? [question(0)] : [answer(turn - 1), question(turn)]);

  it("gets the prompts that it would get for its whole history", async () => {
    const whole: object[] = [];
    for (let turn = 0; turn < TURNS; turn++) {
      whole.push(...added(turn));
      const memories = facts(turn);
      const sent = { user_id: "bob", conversation_id: "whole", system: "Be kind.", messages: whole, memories };
      const exact = await app.compose(sent);
      const system = turn === 0 ? { system: "Be kind." } : {};
      const own = await app.compose({ ...stored, ...system, messages: added(turn), memories });
      expect(own.messages).toEqual(exact.messages);
      const { added_messages: count = 0, ...plan } = own.plan;
      expect(plan).toEqual(exact.plan);
      expect(count).toBe(turn === 0 ? 0 : whole.length - added(turn).length + 1);
      expect(own.warnings).toEqual(exact.warnings);
    }
  });

  it("takes the request's own instructions in place of the stored ones", async () => {
    await app.compose({ ...stored, system: "Be kind.", messages: [question(0)], memories: facts(0) });
    const kept = await app.compose({ ...stored, messages: added(1), memories: facts(1) });
    expect(kept.messages[0]).toEqual({ role: "system", content: "Be kind." });
    const other = await app.compose({ ...stored, system: "Be brief.", messages: added(2), memories: facts(2) });
    expect(other.messages[0]).toEqual({ role: "system", content: "Be brief." });
    expect(other.messages.filter(({ role }) => role === "system")).toHaveLength(1);
  });

  it("is told that an answer is missing, and repeats a request by its id", async () => {
    await app.compose({ ...stored, messages: [question(0)], memories: facts(0) });
    const next = { ...stored, request_id: "r", messages: [question(1)], memories: facts(1) };
    const composed = await app.compose(next);
    expect(composed.warnings).toMatchObject([{ code: "answer_missing" }]);
    expect(await app.compose(next)).toEqual(composed);
    const exact = await app.compose({ ...next, history: "exact" });
    expect(exact.messages).toEqual(composed.messages);
    expect(exact.warnings).toMatchObject([{ code: "answer_missing" }, { code: "request_id_reused" }]);
  });

  it("begins after what was forgotten, and says so", async () => {
    await app.compose({
      ...stored,
      messages: [{ role: "user", content: "Why is Ada's fact 1. so?" }],
      memories: facts(0),
    });
    await app.compose({ ...stored, messages: added(1), memories: facts(1) });
    expect((await app.send("DELETE", "/users/ada/memories/m1")).status).toBe(200);
    const { messages, warnings } = await app.compose({ ...stored, messages: added(2), memories: [] });
    expect(JSON.stringify(messages)).not.toContain("fact 1.");
    expect(messages.at(-1)).toEqual(question(2));
    expect(warnings.map(({ code }) => code)).toContain("history_cut");
  });

  it("needs a conversation, and never reads another user's or agent's", async () => {
    const { conversation_id: _, ...without } = stored;
    const refused = await app.send("POST", "/compose", { ...without, messages: [question(0)], memories: [] });
    expect(refused.status).toBe(422);
    expect(problemOf(refused).errors).toMatchObject([{ field: "history" }]);
    await app.compose({ ...stored, messages: [question(0)], memories: facts(0) });
    for (const other of [{ user_id: "eve" }, { agent_id: "coach" }, { conversation_id: "another" }]) {
      const { messages } = await app.compose({ ...stored, ...other, messages: [question(7)], memories: [] });
      expect(messages).toEqual([question(7)]);
    }
  });
});
