import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { openRestMem0 } from "../../../src/memory/rest-mem0.js";
import { commands } from "../../cli/memprefix-command.js";
import { openAiEngine } from "../../http/routes/openai-engine.js";
import { describeMemorySource } from "../memory-source.suite.js";
import { startPythonMem0 } from "./python-mem0.js";

const started = await startPythonMem0();
const missing = typeof started === "string";
/** Where nothing listens. */
const nobody = await (async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return `http://127.0.0.1:${port}`;
})();
const title = missing ? `Mem0's REST server (skipped: ${started})` : started.title;
/** Only read by tests that are not skipped. */
const mem0 = missing ? { url: "http://127.0.0.1", key: "", call: async () => null, close: async () => {} } : started;
afterAll(() => mem0.close());

describe.skipIf(missing)(title, () => {
  afterEach(async () => {
    await mem0.call("POST", "/reset");
  });

  describeMemorySource("is a source", {
    async open() {
      return { source: openRestMem0({ url: mem0.url, apiKey: mem0.key }), async dispose() {} };
    },
    withoutAgent: "all",
    skips: {
      "deletes nothing for an id that is none": "of an id that is no UUID the server says that its own store failed",
    },
  });

  describe("behind memprefix serve, with MEMPREFIX_SOURCE=rest", () => {
    const memprefix = commands();
    const engine = openAiEngine();
    let ids: Record<"diet" | "place" | "bicycle", string>;
    let url = "";
    beforeEach(async () => {
      ids = {
        diet: await added("Ana is vegetarian.", { metadata: { topic: "food", year: 2024 } }),
        place: await added("Ana is in Lisbon this week.", { metadata: { topic: "travel", year: 2026 } }),
        bicycle: await added("Ana's bicycle is red.", { expiration_date: "2020-01-01" }),
      };
      await added("Bob eats everything.", { user_id: "bob" });
      url = await serve();
    });

    const serve = async (environment: Readonly<Record<string, string>> = {}) => {
      const { address } = await memprefix.serve({
        ...{ MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: mem0.url, MEMPREFIX_MEM0_API_KEY: mem0.key },
        ...{ MEMPREFIX_UPSTREAM_URL: engine.url, MEMPREFIX_SEARCH_TIMEOUT_MS: "60000" },
        ...environment,
      });
      return address;
    };
    const added = async (content: string, more: object) => {
      const body = { messages: [{ role: "user", content }], user_id: "ana", infer: false, ...more };
      const { results } = (await mem0.call("POST", "/memories", body)) as { results: { id: string }[] };
      return results[0]?.id ?? "";
    };
    const post = async (path: string, body: object) => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
      return { status: answer.status, headers: answer.headers, body: await answer.json() };
    };
    interface Answer {
      readonly messages: readonly { readonly content: string }[];
      readonly warnings: readonly { readonly message: string }[];
    }
    const composed = async (query: string, more: object = {}) => {
      const { status, body } = await post("/compose", { user_id: "ana", query, ...more });
      expect(status, JSON.stringify(body)).toBe(200);
      const { messages, warnings } = body as Answer;
      return { prompt: messages.map(({ content }) => content).join("\n"), warnings };
    };
    const conversation = () => {
      const messages: object[] = [];
      return async (content: string) => {
        messages.push({ role: "user", content });
        const named = { user_id: "ana", conversation_id: "trip", top_k: 1, retention: "keep" };
        const { status } = await post("/v1/chat/completions", { model: "stub-1", messages, memprefix: named });
        expect(status).toBe(200);
        messages.push({ role: "assistant", content: "Indeed." });
        const sent = engine.requests.at(-1)?.body.messages ?? [];
        return { all: JSON.stringify(sent), last: String(sent.at(-1)?.content) };
      };
    };

    it("gives what is nearest in meaning, of this user, without what has expired", async () => {
      const { prompt, warnings } = await composed("What should we cook for her?", { top_k: 1 });
      expect(warnings).toEqual([]);
      expect(prompt).toContain("- Ana is vegetarian.\n</memories>");
      const { prompt: all } = await composed("Tell me all of her.");
      expect(all).toContain("vegetarian");
      expect(all).not.toMatch(/bicycle|Bob/);
    });

    it.each<[what: string, more: object, found: string[]]>([
      ["metadata", { search: { filters: { topic: "food" } } }, ["vegetarian"]],
      ["a comparison", { search: { filters: { year: { gte: 2025 } } } }, ["Lisbon"]],
      [
        "either of two",
        { search: { filters: { OR: [{ topic: "food" }, { topic: "travel" }] } } },
        ["vegetarian", "Lisbon"],
      ],
      ["what is not", { search: { filters: { NOT: [{ topic: "food" }] } } }, ["Lisbon"]],
      ["what has expired, too", { search: { show_expired: true } }, ["vegetarian", "Lisbon", "bicycle"]],
      [
        "what that server has no word for",
        { search: { reference_date: "2026-01-01", rerank: true } },
        ["vegetarian", "Lisbon"],
      ],
      ["another agent's", { agent_id: "cook" }, []],
    ])("narrows a search by %s", async (_what, more, found) => {
      const { prompt, warnings } = await composed("What of Ana?", more);
      expect(warnings).toEqual([]);
      const all = ["vegetarian", "Lisbon", "bicycle"];
      expect(all.filter((word) => prompt.includes(word))).toEqual(found);
    });

    it.each<[what: string, more: object, found: string[]]>([
      ["nothing more", {}, ["Lisbon"]],
      ["another condition", { topic: "travel" }, ["Lisbon"]],
      ["either of two", { OR: [{ topic: "travel" }, { topic: "food" }] }, ["Lisbon"]],
      ["the same condition otherwise", { year: { gte: 2000 } }, ["Lisbon"]],
      ["its opposite", { year: 2024 }, []],
      ["what is not, of the same", { NOT: [{ year: { gte: 2025 } }] }, []],
    ])("keeps to the configured conditions where a request says %s", async (_what, filters, found) => {
      url = await serve({ MEMPREFIX_MEM0_SEARCH: '{"filters":{"year":{"gte":2025}}}' });
      const { prompt, warnings } = await composed("What of Ana?", { search: { filters } });
      expect(warnings).toEqual([]);
      expect(["vegetarian", "Lisbon", "bicycle"].filter((word) => prompt.includes(word))).toEqual(found);
    });

    it("gives dates where they are wanted", async () => {
      const { prompt } = await composed("What should we cook for her?", { top_k: 1, dates: true });
      expect(prompt).toMatch(/- \d{4}-\d\d-\d\d: Ana is vegetarian\.\n/);
    });

    it("keeps what is posted to memprefix, where the next search finds it", async () => {
      const { status } = await post("/memories", { user_id: "ana", memories: ["Ana plays the cello."] });
      expect(status).toBe(201);
      expect((await composed("Which instrument does she play?", { top_k: 1 })).prompt).toContain("cello");
    });

    it("tells a conversation what was updated there, and sends nothing more of what was deleted", async () => {
      const say = conversation();
      expect((await say("Where is Ana this week?")).last).toContain("- Ana is in Lisbon this week.");
      await mem0.call("PUT", `/memories/${ids.place}`, { text: "Ana is in Porto this week." });
      expect((await say("What should we cook for her?")).last).toContain(
        "</memories>\nUpdate: Ana is in Porto this week.",
      );
      await mem0.call("DELETE", `/memories/${ids.place}`);
      expect((await say("And for dessert?")).all).not.toMatch(/Lisbon|Porto/);
    });

    it("takes a memory that has expired there from a conversation", async () => {
      const say = conversation();
      await say("Where is Ana this week?");
      await mem0.call("PUT", `/memories/${ids.place}`, { expiration_date: "2020-01-01" });
      expect((await say("What should we cook for her?")).all).not.toContain("Ana is in Lisbon this week.");
    });

    it("is found in order by memprefix doctor", async () => {
      const { stdout } = await memprefix.run(["doctor", "--user", "ana"], {
        environment: {
          ...{ MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: mem0.url, MEMPREFIX_MEM0_API_KEY: mem0.key },
          ...{ MEMPREFIX_PORT: "1", MEMPREFIX_SEARCH_TIMEOUT_MS: "60000" },
        },
      });
      expect(stdout).toMatch(/^memories +ok +mem0-rest found \d for ana in /m);
    });

    it.each<[what: string, environment: () => Readonly<Record<string, string>>, says: RegExp]>([
      [
        "the key is wrong",
        () => ({ MEMPREFIX_MEM0_API_KEY: "wrong" }),
        /"mem0-rest" answered with status 401: Invalid API key/,
      ],
      ["it is down", () => ({ MEMPREFIX_MEM0_URL: nobody }), /"mem0-rest" could not be reached: ECONNREFUSED/],
      [
        "its search is elsewhere, as in another version",
        () => ({ MEMPREFIX_MEM0_URL: `${mem0.url}/v0` }),
        /"mem0-rest" answered with status 404: Not Found/,
      ],
    ])("says in one sentence that %s, and answers chats", async (_what, environment, says) => {
      url = await serve(environment());
      const { prompt, warnings } = await composed("What should we cook for her?");
      expect(prompt).toBe("What should we cook for her?");
      expect(warnings.map(({ message }) => message)).toEqual([expect.stringMatching(says)]);
      const say = conversation();
      expect((await say("What should we cook for her?")).last).toBe("What should we cook for her?");
    });
  });
});
