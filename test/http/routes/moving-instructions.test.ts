import { describe, expect, it } from "vitest";
import { readSettings } from "../../../src/cli/settings.js";
import { type ServedApp, servedApp, startApp } from "../server/served-app.js";
import { answeringSource } from "./answering-source.js";
import { anthropicServer } from "./anthropic-server.js";
import { type OpenAiEngine, openAiEngine } from "./openai-engine.js";

/* Instructions that change from turn to turn: a clock, a counter, a list. */

const RULES = Array.from(
  { length: 60 },
  (_, n) =>
    `Rule ${n}: of matter number ${n} say no more than is known, in at most ${n + 2} short sentences, and name your source.`,
);
const withLines = (...lines: readonly string[]) => [...RULES, ...lines].join("\n");
const QUESTION =
  "Which of the houses that we saw on the way should she look at first, and which of them can wait until spring?";
const ANSWER =
  "She should look at the one on the corner first, as it is the only one with a garden. The others can wait: ".repeat(
    5,
  );

type Message = Readonly<Record<"role" | "content", string>>;

/** One conversation, turn by turn, with the system text of each. */
class Conversation {
  readonly #said: Message[] = [];

  constructor(
    private readonly app: ServedApp,
    private readonly engine: OpenAiEngine,
    private readonly user = "ada",
  ) {}

  async ask(system: string, question = QUESTION): Promise<{ requestId: string; prompt: readonly Message[] }> {
    this.#said.push({ role: "user", content: question });
    this.engine.answers.push(ANSWER);
    const messages = [{ role: "system", content: system }, ...this.#said];
    const response = await fetch(`${this.app.base}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-memprefix-user": this.user, "x-memprefix-conversation": "c-1", connection: "close" },
      body: JSON.stringify({ model: "stub-1", messages }),
    });
    expect(response.status, await response.clone().text()).toBe(200);
    await response.text();
    this.#said.push({ role: "assistant", content: ANSWER });
    const prompt = this.engine.requests.at(-1)?.body.messages as readonly Message[];
    return { requestId: response.headers.get("x-memprefix-request-id") ?? "", prompt };
  }

  async explain(requestId: string): Promise<{ miss: { cause: string } | null; words: string[] }> {
    const { text } = await this.app.send("GET", `/requests/${requestId}/explain?user_id=${this.user}`);
    return JSON.parse(text) as { miss: { cause: string } | null; words: string[] };
  }
}

describe("instructions that change, as they come", () => {
  const engine = openAiEngine();
  const app = servedApp({ source: () => answeringSource(["Likes tea."]), upstream: engine });

  it("are a miss, and the answer alone says from which line on", async () => {
    const conversation = new Conversation(app, engine);
    await conversation.ask(withLines("It is 10:05 in Turin."));
    const { requestId, prompt } = await conversation.ask(withLines("It is 10:06 in Turin."));
    expect(prompt[0]?.content).toBe(withLines("It is 10:06 in Turin."));
    const { miss, words } = await conversation.explain(requestId);
    expect(miss?.cause).toBe("instructions_changed");
    expect(words).toContain("Its instructions differ from line 61 on.");
    const asked = { user_id: "eve", conversation_id: "c-1", memories: [] };
    await app.compose({ ...asked, query: "?", system: "Be kind.\nIt is ten." });
    const { plan } = await app.compose({ ...asked, query: "And?", system: "Be kind.\nIt is eleven." });
    expect(plan.instruction_change).toEqual({ line: 2, text: "It is eleven." });
    expect(JSON.stringify([words, app.log])).not.toMatch(/Turin|eleven/);
  });
});

describe("instructions that stay as they were first", () => {
  const engine = openAiEngine();
  const source = answeringSource([]);
  const environment = { MEMPREFIX_STABLE_INSTRUCTIONS: "on" };
  const app = servedApp({ source: () => source, upstream: engine, environment });

  it("are followed by what changed, between the memories and the question, and only by that", async () => {
    source.found = ["Likes tea."];
    const conversation = new Conversation(app, engine);
    const first = withLines("It is 10:05.", "Tokens left: 900.", "- [ ] tea", "- [ ] cake");
    const turns = [
      await conversation.ask(first, "One?"),
      await conversation.ask(withLines("It is 10:06.", "Tokens left: 900.", "- [ ] tea", "- [ ] cake"), "Two?"),
      await conversation.ask(withLines("It is 10:06.", "Tokens left: 900.", "- [ ] tea", "- [ ] cake"), "Three?"),
      await conversation.ask(withLines("It is 10:06.", "Tokens left: 700.", "- [ ] cake"), "Four?"),
      await conversation.ask(first, "Five?"),
    ];
    expect(turns.map(({ prompt }) => prompt[0]?.content)).toEqual(turns.map(() => first));
    expect(turns.map(({ prompt }) => prompt.at(-1)?.content)).toEqual([
      "<memories>\n- Likes tea.\n</memories>\n\nOne?",
      "Updated instructions: It is 10:06.\n\nTwo?",
      "Three?",
      "Updated instructions:\n  It is 10:06.\n  Tokens left: 700.\n  No longer: It is 10:05.\n  No longer: Tokens left: 900.\n  No longer: - [ ] tea\n\nFour?",
      "Updated instructions: as above.\n\nFive?",
    ]);
    for (const [turn, { prompt, requestId }] of turns.entries()) {
      const before = turns[turn - 1]?.prompt ?? [];
      expect(prompt.slice(0, before.length)).toEqual(before);
      if (turn > 0) expect((await conversation.explain(requestId)).miss).toBeNull();
    }
  });

  it("outlive the service", async () => {
    const conversation = new Conversation(app, engine);
    await conversation.ask(withLines("It is ten."), "One?");
    const settings = readSettings({
      MEMPREFIX_DATA_DIR: app.dataDir,
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_UPSTREAM_URL: engine.url,
      ...environment,
    });
    await app.memprefix.close();
    const again = await startApp(settings, null, { log: [], faults: [] });
    try {
      Object.assign(conversation, { app: again });
      const { prompt } = await conversation.ask(withLines("It is eleven."), "Two?");
      expect(prompt[0]?.content).toBe(withLines("It is ten."));
      expect(prompt.at(-1)?.content).toContain("Updated instructions: It is eleven.\n\nTwo?");
    } finally {
      await again.close();
    }
  });

  it("are forgotten with the memory that they quote", async () => {
    const conversation = new Conversation(app, engine);
    await conversation.ask(withLines("To do: nothing."), "One?");
    const memory = "the key is under the third flower pot";
    await app.compose({ user_id: "ada", query: "?", memories: [{ id: "m-key", memory }] });
    await conversation.ask(withLines(`To do: see whether ${memory}.`), "Two?");
    await app.send("DELETE", "/users/ada/memories/m-key");
    expect((await app.send("GET", "/users/ada/export")).text).not.toContain("flower pot");
  });

  it("are the request's where most of them changed", async () => {
    const conversation = new Conversation(app, engine);
    await conversation.ask(withLines());
    const other = "You review code now, and say what is wrong with it.";
    expect((await conversation.ask(other)).prompt[0]?.content).toBe(other);
  });

  it("cost at most 2 % more with a clock than without", async () => {
    const computed = async (user: string, systemOf: (turn: number) => string) => {
      const conversation = new Conversation(app, engine, user);
      const from = engine.requests.length;
      for (let turn = 0; turn < 20; turn++) {
        source.found = Array.from(
          { length: 20 },
          (_, n) => `${user}'s house number ${5 * turn + n} has ${n} windows and a door.`,
        );
        await conversation.ask(systemOf(turn));
      }
      return engine.computed.slice(from).reduce((sum, tokens) => sum + tokens, 0);
    };
    const without = await computed("sam", () => `Sam's.\n${withLines("Current time: 10:10")}`);
    const clock = await computed("rob", (turn) => `Rob's.\n${withLines(`Current time: 10:${10 + turn}`)}`);
    expect(clock).toBeLessThanOrEqual(1.02 * without);
  });
});

describe("instructions in parts, with the client's cache mark", () => {
  const anthropic = anthropicServer();
  const app = servedApp({
    source: () => answeringSource([]),
    upstream: anthropic,
    environment: { MEMPREFIX_STABLE_INSTRUCTIONS: "on", MEMPREFIX_ENGINE_FAMILY: "anthropic" },
  });

  it("stay as they were first, in marks that the provider takes", async () => {
    const mark = { cache_control: { type: "ephemeral" } };
    const said: object[] = [];
    for (const [time, question] of [
      ["ten", "One?"],
      ["eleven", "Two?"],
    ]) {
      said.push({ role: "user", content: question });
      const system = [
        { type: "text", text: RULES.join("\n") },
        { type: "text", text: `It is ${time}.`, ...mark },
      ];
      const response = await fetch(`${app.base}/v1/messages`, {
        method: "POST",
        headers: { "x-memprefix-user": "ada", "x-memprefix-conversation": "c-1", connection: "close" },
        body: JSON.stringify({ model: "claude-opus-4-8", max_tokens: 9, system, messages: said }),
      });
      expect(response.status).toBe(200);
      await response.text();
      said.push({ role: "assistant", content: "Indeed." });
    }
    const texts = anthropic.calls.map(({ body }) => (body.system as { text: string }[]).map(({ text }) => text));
    expect(texts).toEqual([texts[0], texts[0]]);
    expect(texts[0]?.at(-1)).toBe("It is ten.");
    expect(JSON.stringify(anthropic.calls[1]?.body.messages.at(-1))).toContain("Updated instructions: It is eleven.");
  });
});
