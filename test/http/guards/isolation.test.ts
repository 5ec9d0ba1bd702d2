import { describe, expect, it } from "vitest";
import { type ServedApp, servedApp } from "../server/served-app.js";

const SECRET = "Ada hides the key under the third flower pot";
const ours = [
  { id: "m-1", memory: "Bob drinks coffee" },
  { id: "m-2", memory: "Bob lives in Rome" },
  { id: "m-3", memory: "Bob has a dog" },
];
const theirs = [
  { id: "m-1", memory: SECRET },
  { id: "m-3", memory: "Ada has a cat" },
  { id: "m-2", memory: "Ada lives in Paris" },
];
const question = { role: "user", content: "Where is it?" };
const answered = { role: "assistant", content: "At home." };

/** A user's day: single prompts, a conversation, an eviction and feedback. Everything has the same names for every user. */
async function day(app: ServedApp, user: object, memories: readonly object[]): Promise<string[]> {
  const [first, second, third] = memories;
  const at = { ...user, conversation_id: "c" };
  const requests = [
    ["/compose", { ...user, request_id: "r-1", query: "Where is it?", memories: [first, second] }],
    ["/compose", { ...user, request_id: "r-2", query: "Where is it?", memories: [third, second, first] }],
    ["/compose", { ...at, request_id: "r-3", messages: [question], memories: [second] }],
    ["/compose", { ...at, request_id: "r-4", messages: [question, answered, question], memories: [third, second] }],
    ["/compose", { ...user, request_id: "r-1", query: "Where is it?", memories: [first, second] }],
    ["/feedback", { ...user, request_id: "r-2", cached_tokens: 7 }],
  ] as const;
  const answers: string[] = [];
  for (const [path, body] of requests) answers.push((await app.send("POST", path, body)).text);
  return answers;
}

const bob = { user_id: "bob" };

describe("a user", () => {
  const shared = servedApp();
  const alone = servedApp();

  it.each([
    ["another user", { user_id: "ada" }],
    ["the user's name in other letters", { user_id: "Bob" }],
    ["the user's name with white space", { user_id: "bob " }],
    ["an agent of the user", { user_id: "bob", agent_id: "planner" }],
    ["a name that could be mistaken for user and agent", { user_id: '["default","bob",null]' }],
  ])("gets the bytes that they would get if there were no other: %s", async (_who, other) => {
    const before = await day(shared, other, theirs);
    expect(before.join()).toContain(SECRET);
    const answers = await day(shared, bob, ours);
    expect(answers).toEqual(await day(alone, bob, ours));
    expect(answers.join()).not.toContain(SECRET);
    // The two services' clocks differ.
    const storedOf = async (app: typeof shared) => {
      const text = (await app.send("GET", "/users/bob/export")).text.replace(/"(\w*[aA]t)":\d+/g, '"$1":0');
      const { scopes } = JSON.parse(text) as { scopes: { agent_id: string | null }[] };
      return scopes.filter(({ agent_id }) => agent_id === null);
    };
    expect(await storedOf(shared)).toEqual(await storedOf(alone));
  });

  it("gets them though the others ask at the same time", async () => {
    const others = Array.from({ length: 5 }, (_, at) => day(shared, { user_id: `ada-${at}` }, theirs));
    const [answers] = await Promise.all([day(shared, bob, ours), ...others]);
    expect(answers).toEqual(await day(alone, bob, ours));
    expect(new Set((await Promise.all(others)).map((texts) => texts.join())).size).toBe(1);
  });

  it("sends another user's section as the text that it is to them", async () => {
    const given = await shared.compose({
      user_id: "ada",
      conversation_id: "c",
      messages: [question],
      memories: theirs,
    });
    const history = [...given.messages, answered, question];
    const body = { ...bob, conversation_id: "c", request_id: "r-1", messages: history, memories: ours };
    for (const app of [shared, alone]) await app.compose({ ...bob, query: "Where is it?", memories: ours });
    const answer = await shared.send("POST", "/compose", body);
    expect(answer).toEqual(await alone.send("POST", "/compose", body));
  });
});
