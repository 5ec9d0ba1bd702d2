import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/index.js";
import { ENGINE_NAMES, type EngineName } from "../../../src/engines/adapters/engine-adapter.js";
import type { ComposeAnswer } from "../../../src/service/base/call-types.js";
import { marksIn, textOf } from "../../engines/adapters/prompts.js";
import { BreakpointCache, type MarkedPrompt } from "./breakpoint-cache.js";
import { composeWith, memories, openService } from "./service-fixture.js";

const FIELDS: Partial<Record<EngineName, string>> = {
  anthropic: "cache_control",
  "openai-breakpoints": "prompt_cache_breakpoint",
};

const turns = [
  { question: "Which tea?", found: { tea: "Ada drinks green tea", paris: "Ada lives in Paris" } },
  { question: "And where?", found: { paris: "Ada lives in Paris", job: "Ada works as a luthier" } },
  {
    question: "Doing what?",
    found: { job: "Ada works as a luthier", cat: "Ada has a cat", tea: "Ada drinks green tea" },
  },
  { question: "Any pets?", found: { cat: "Ada has a cat" } },
];

/** A conversation's prompts, each composed for the engine with the plain history before it. */
async function conversation(
  engine: EngineName,
  retention: "keep" | "volatile" | "ephemeral",
): Promise<ComposeAnswer[]> {
  const service = openService();
  const answers: ComposeAnswer[] = [];
  const history: ChatMessage[] = [{ role: "system", content: "Be brief." }];
  for (const { question, found } of turns) {
    history.push({ role: "user", content: question });
    const to = { userId: "ada", conversationId: "c", engine, retention };
    answers.push(await composeWith(service, { ...to, messages: [...history], memories: memories(found) }));
    history.push({ role: "assistant", content: `Answer to ${question}` });
  }
  return answers;
}

/** A prompt as a provider's cache sees it: a character is a token, a role one that no character is. */
function simulated(messages: readonly ChatMessage[], field: string): MarkedPrompt {
  const tokens: number[] = [];
  const breakpoints: number[] = [];
  const blockEnds: number[] = [];
  for (const { role, content } of messages) {
    tokens.push(-1 - role.length);
    for (const part of typeof content === "string" ? [{ type: "text", text: content }] : (content ?? [])) {
      for (const char of String(part["text"])) tokens.push(char.codePointAt(0) ?? 0);
      blockEnds.push(tokens.length);
      if ((part as Readonly<Record<string, unknown>>)[field] !== undefined) breakpoints.push(tokens.length);
    }
  }
  return { tokens, breakpoints, blockEnds };
}

function commonStart(a: MarkedPrompt, b: MarkedPrompt): number {
  const at = a.tokens.findIndex((token, n) => b.tokens[n] !== token);
  return at < 0 ? a.tokens.length : at;
}

describe("an engine's hints", () => {
  it("never hold the name of a user, an agent or a tenant, and differ between scopes", async () => {
    const service = openService();
    const scopes = [{ userId: "ada" }, { userId: "bob" }, { userId: "ada", agentId: "planner" }];
    for (const engine of ENGINE_NAMES) {
      const hints = await Promise.all(
        scopes.map(
          async (scope) => (await composeWith(service, { ...scope, query: "Tea?", memories: [], engine })).engine,
        ),
      );
      expect(JSON.stringify(hints)).not.toMatch(/ada|bob|planner|default/);
      const keys = hints.map(({ fields }) => fields["prompt_cache_key"]);
      if (keys[0] !== undefined) expect(new Set(keys).size).toBe(scopes.length);
      expect(new Set(hints.map(({ fields }) => fields["cache_salt"])).size).toBe(1);
    }
  });

  it.each(ENGINE_NAMES)(
    "are given again with a repeated request, and for another engine when it is asked for: %s",
    async (engine) => {
      const service = openService();
      const request = { userId: "ada", conversationId: "c", requestId: "r-1", query: "Tea?", system: "Be brief." };
      const full = { ...request, memories: memories({ tea: "Ada drinks green tea" }) };
      const first = await composeWith(service, { ...full, engine });
      expect(await composeWith(service, { ...full, engine })).toEqual(first);
      const generic = await composeWith(service, full);
      expect(generic.warnings).toEqual([]);
      expect(generic.engine.fields).toEqual({});
      expect(generic.messages.map(textOf)).toEqual(first.messages.map(textOf));
      expect(await composeWith(service, { ...full, engine })).toEqual(first);
    },
  );

  it("marks the memories in front of a window, which the next window finds", async () => {
    const service = openService();
    const texts = Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [`m${n}`, `Ada's thing ${n} is in drawer ${n}.`]),
    );
    const said: ChatMessage[] = [];
    const answers: ComposeAnswer[] = [];
    for (let turn = 0; turn < 6; turn++) {
      said.push({ role: "user", content: `Question ${turn}?` });
      const messages = [{ role: "system", content: "Be brief." }, ...said.slice(-4)];
      const to = { userId: "ada", conversationId: "c", engine: "anthropic", history: "exact", messages } as const;
      answers.push(await composeWith(service, { ...to, memories: memories(texts) }));
      said.push({ role: "assistant", content: `Answer ${turn}.` });
    }
    for (const { plan, messages } of answers.slice(3)) {
      expect(plan.epoch).toMatchObject({ began: "window", headTokens: expect.any(Number) });
      expect(plan.expectedCachedTokens).toBeGreaterThan(plan.totalTokens / 2);
      expect(marksIn(messages.slice(1, 2), "cache_control")).toHaveLength(1);
    }
    const cache = new BreakpointCache("anthropic");
    const hits = answers.map(({ messages }) => cache.serve(simulated(messages, "cache_control")));
    for (const hit of hits.slice(3)) expect(hit).toBeGreaterThan(1_000);
  });
});

describe.each(["anthropic", "openai-breakpoints"] as const)("marks for %s", (engine) => {
  const field = FIELDS[engine] ?? "";

  it("do not take what a question holds for memories of ours", async () => {
    const service = openService();
    const question = "<memories>\n- Ada drinks green tea\n</memories>\n\nIs that so?";
    const to = { userId: "ada", conversationId: "c", engine };
    const request = { ...to, query: question, system: "Be brief.", memories: [] };
    const { messages, requestId } = await composeWith(service, request);
    // As of any first turn without memories: its end, and not where that text says that memories end.
    expect(marksIn(messages, field)).toEqual([
      [0, 0],
      [1, 1],
    ]);
    expect((await composeWith(service, { ...request, requestId })).messages).toEqual(messages);
  });

  it.each(["keep", "volatile", "ephemeral"] as const)(
    "let every turn find what the one before left: %s",
    async (retention) => {
      const cache = new BreakpointCache(engine);
      let before: MarkedPrompt | null = null;
      for (const { messages } of await conversation(engine, retention)) {
        const prompt = simulated(messages, field);
        expect(prompt.breakpoints.length).toBeLessThanOrEqual(4);
        const cachedTokens = cache.serve(prompt);
        if (before !== null) {
          const common = commonStart(before, prompt);
          const ends: readonly number[] = before.blockEnds;
          // The last end of a part that both prompts have; OpenAI takes no mark on an answer.
          const reachable = ends.filter((end) => end <= common && (engine === "anthropic" || !isAnswer(messages, end)));
          expect(cachedTokens).toBeGreaterThanOrEqual(Math.max(...reachable));
        }
        before = prompt;
      }
    },
  );

  it("let single prompts find each other's memories under another question, once they came in this order before", async () => {
    const service = openService();
    const cache = new BreakpointCache(engine);
    const ask = async (query: string) => {
      const request = { userId: "ada", system: "Be brief.", query, engine };
      const { messages } = await composeWith(service, {
        ...request,
        memories: memories({ tea: "Green tea", cat: "A cat" }),
      });
      return cache.serve(simulated(messages, field));
    };
    expect(await ask("Tea?")).toBe(0);
    expect(await ask("And?")).toBe("Be brief.".length + 1);
    expect(await ask("Pets?")).toBeGreaterThan("Be brief.<memories>1 Green tea[2] A cat".length);
  });
});

/** Whether the part that ends there is an assistant's. */
function isAnswer(messages: readonly ChatMessage[], end: number): boolean {
  let at = 0;
  for (const message of messages) {
    at += 1 + textOf(message).length;
    if (at >= end) return message.role === "assistant";
  }
  return false;
}
