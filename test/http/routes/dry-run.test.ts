import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { storedExchanges } from "./stored-rows.js";

const MEMORIES = ["Ada drinks green tea", "Ada lives in Paris", "Ada has a cat", "Ada rides a bicycle"].map(
  (memory, at) => ({ id: `m-${at}`, memory }),
);
const user = (content: string) => ({ role: "user", content });
const answer = { role: "assistant", content: "At home." };

/** What is asked one after the other, each for the same user. */
const CASES: readonly (readonly [string, readonly object[]])[] = [
  [
    "single prompts",
    [
      { query: "Tea?", memories: MEMORIES.slice(0, 2) },
      { query: "And?", memories: MEMORIES },
    ],
  ],
  [
    "a conversation",
    [
      { conversation_id: "c", messages: [user("Tea?")], memories: MEMORIES.slice(0, 2) },
      { conversation_id: "c", messages: [user("Tea?"), answer, user("And?")], memories: MEMORIES },
      { conversation_id: "c", messages: [user("Tea?"), answer, user("No: where?")], memories: MEMORIES.slice(1) },
    ],
  ],
  ["a search", [{ query: "Tea?" }, { query: "And?" }]],
  [
    "a memory that changed",
    [
      { query: "Tea?", memories: MEMORIES },
      { query: "Tea?", memories: [{ id: "m-0", memory: "Ada drinks coffee" }] },
    ],
  ],
];

describe("a dry run of POST /compose", () => {
  const source = answeringSource(["Ada drinks green tea"]);
  const app = servedApp({ source: () => source });
  const stateOf = async (userId: string) => {
    const paths = ["export", "index"].map((of) => `/users/${encodeURIComponent(userId)}/${of}`);
    const paged = ["/usage/requests", "/usage/summary?window=hour"];
    const [shown, index, ...figures] = await Promise.all(
      [...paths, ...paged].map(async (path) => (await app.send("GET", path)).text),
    );
    const metrics = (await app.send("GET", "/metrics")).text;
    const counted = metrics.split("\n").filter((line) => /^memprefix_(?:compose|prompt|expected|blocks)/.test(line));
    return { shown, index: index?.replace(/"used_at":\d+/g, ""), figures: figures.map(withoutTimes), counted };
  };

  it.each(CASES)("leaves nothing, and tells what comes: %s", async (_what, requests) => {
    for (const request of requests) {
      const before = await stateOf("ada");
      const looked = [];
      for (let n = 0; n < 2; n++) looked.push(await app.compose({ ...request, user_id: "ada", dry_run: true }));
      expect(await stateOf("ada")).toEqual(before);
      expect(bare(looked[1])).toEqual(bare(looked[0]));
      const sent = await app.compose({ ...request, user_id: "ada" });
      expect(bare(looked[0])).toEqual(bare(sent));
      // The same as for somebody who never looked.
      const another = await app.compose({ ...request, user_id: "bob" });
      // Workers are chosen by what all users send.
      expect(bare({ ...sent, worker: null })).toEqual(bare({ ...another, worker: null }));
    }
  });

  it("of a user that nobody knew leaves nobody behind", async () => {
    await app.compose({
      user_id: "eve",
      conversation_id: "c",
      request_id: "r-9",
      query: "Tea?",
      memories: MEMORIES,
      dry_run: true,
    });
    expect(storedExchanges(app.database).requests).toEqual([]);
    const explained = await app.send("GET", "/users/eve/requests/r-9/explain");
    expect(explained.status).toBe(404);
    const told = await app.send("POST", "/feedback", { user_id: "eve", request_id: "r-9", cached_tokens: 1 });
    expect(told.status).toBe(404);
  });

  it("of a request that was answered gives that answer", async () => {
    const request = { user_id: "ada", request_id: "r-1", query: "Tea?", memories: MEMORIES };
    const sent = await app.compose(request);
    expect(await app.compose({ ...request, dry_run: true })).toEqual(sent);
  });

  it("is what a prompt of a user that was made up to try something is not: that one is stored, and counts in no figures", async () => {
    const before = await stateOf("memprefix-try-zoe");
    await app.compose({ user_id: "memprefix-try-zoe", request_id: "r-1", query: "Tea?", memories: MEMORIES });
    const after = await stateOf("memprefix-try-zoe");
    expect(after.figures).toEqual(before.figures);
    expect(after.counted).toEqual(before.counted);
    expect(after.shown).toContain("r-1");
    expect((await app.send("DELETE", "/users/memprefix-try-zoe")).status).toBe(200);
    expect((await stateOf("memprefix-try-zoe")).figures).toEqual(before.figures);
  });
});

function bare(composed: unknown): unknown {
  const { request_id: _id, engine: _engine, ...rest } = composed as Record<string, unknown>;
  return rest;
}

/** Without the summary's minutes, too, which move on while the test runs; their sums stay. */
function withoutTimes(text: string): string {
  return text
    .replace(/"points":\[.*?\],(?="by_model")/, "")
    .replace(/\b\d{13}\b/g, "T")
    .replace(/"\d{4}-\d\d-\d\dT[^"]*"/g, '"T"');
}
