import { describe, expect, it } from "vitest";
import { z } from "zod";
import { type AgentEngine, agentEngine } from "../../clients/agent-engine.js";
import { answerTo, lookUp } from "../../clients/agent-model.js";
import { answeringSource } from "../routes/answering-source.js";
import { servedApp } from "../server/served-app.js";

type Message = Readonly<Record<string, unknown>>;

const composed = z.looseObject({
  messages: z.array(z.record(z.string(), z.unknown())),
  system: z.unknown().optional(),
  plan: z.looseObject({ stable_messages: z.int() }),
});
type Composed = z.output<typeof composed>;

const app = servedApp({ source: () => answeringSource([]) });

async function post(body: object): Promise<{ readonly status: number; readonly answer: unknown }> {
  const { status, text } = await app.send("POST", "/compose", { user_id: "ana", ...body });
  return { status, answer: JSON.parse(text) };
}

async function compose(body: object): Promise<Composed> {
  const { status, answer } = await post(body);
  expect({ status, answer }).toMatchObject({ status: 200 });
  return composed.parse(answer);
}

const memories = (count: number) =>
  ["Ana is vegetarian.", "Ana is in Lisbon.", "Ana has a dog.", "Ana likes to walk.", "Ana gets up late."]
    .slice(0, count)
    .map((memory) => ({ id: memory, memory }));

/** An agent's loop without a framework: composes what it was told, sends it, and keeps what comes. */
interface Loop {
  readonly format: string | null;
  ask(engine: AgentEngine, prompt: Composed): Promise<readonly Message[]>;
  question(text: string): Message;
  results(answer: readonly Message[]): readonly Message[];
  text(answer: readonly Message[]): string;
}

const send = async (engine: AgentEngine, path: string, body: object): Promise<Message> => {
  const answer = await fetch(`${engine.url}/${path}`, {
    method: "POST",
    body: JSON.stringify({ model: "m", ...body }),
  });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Message;
};

const partsOf = (value: unknown) => z.array(z.record(z.string(), z.unknown())).parse(value);

const RESPONSES: Loop = {
  format: null,
  async ask(engine, { messages }) {
    const tools = [{ type: "function", name: "weather" }];
    const { output } = await send(engine, "responses", { input: messages, tools, store: false });
    return partsOf(output);
  },
  question: (text) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] }),
  results: (answer) =>
    answer
      .filter(({ type }) => type === "function_call")
      .map(({ call_id }) => ({ type: "function_call_output", call_id, output: "mild" })),
  text: (answer) =>
    partsOf(answer.at(-1)?.["content"])
      .map(({ text }) => text)
      .join(""),
};

const ANTHROPIC: Loop = {
  format: "messages",
  async ask(engine, { messages, system }) {
    const tools = [{ name: "weather" }];
    const { role, content } = await send(engine, "messages", { system, messages, tools, max_tokens: 100 });
    return [{ role, content }];
  },
  question: (text) => ({ role: "user", content: text }),
  results(answer) {
    const calls = partsOf(answer[0]?.["content"]).filter(({ type }) => type === "tool_use");
    const content = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "mild" }));
    return calls.length === 0 ? [] : [{ role: "user", content }];
  },
  text: (answer) =>
    partsOf(answer[0]?.["content"])
      .map(({ text }) => text)
      .join(""),
};

describe("POST /compose with messages of an API", () => {
  it.each([
    ["Responses", RESPONSES, undefined],
    ["Anthropic's", ANTHROPIC, "Be brief."],
    ["Anthropic's, with breakpoints", ANTHROPIC, [{ type: "text", text: "Be brief." }]],
  ] as const)("%s: an agent's prompts begin with those before, tools included", async (name, loop, system) => {
    const engine = await agentEngine();
    const history: Message[] = [];
    const answers: string[] = [];
    let found = 1;
    try {
      for (const text of ["Where to eat?", lookUp(2), "And now?"]) {
        history.push(loop.question(text));
        for (let answer: readonly Message[] = []; ; ) {
          const prompt = await compose({
            conversation_id: name,
            messages: history,
            memories: memories(found++),
            ...(loop.format === null ? {} : { format: loop.format }),
            ...(system === undefined ? {} : { system }),
            ...(name.endsWith("breakpoints") ? { engine: "anthropic" } : {}),
          });
          answer = await loop.ask(engine, prompt);
          history.push(...answer);
          const results = loop.results(answer);
          history.push(...results);
          if (results.length > 0) continue;
          answers.push(loop.text(answer));
          break;
        }
      }
    } finally {
      await engine.close();
    }
    expect(engine.refused).toEqual([]);
    expect(answers).toEqual(["Where to eat?", lookUp(2), "And now?"].map(answerTo));
    expect(engine.served).toHaveLength(5);
    for (const [at, { asked }] of engine.served.entries()) {
      const before = engine.served[at - 1]?.asked.prompt ?? [];
      expect(asked.prompt.slice(0, before.length)).toEqual(before);
    }
    const last = JSON.stringify(engine.served.at(-1)?.asked.prompt);
    expect(memories(5).map(({ memory }) => last.split(`- ${memory}`).length - 1)).toEqual([1, 1, 1, 1, 1]);
    // The agent keeps what it said and heard, and nothing of memprefix's.
    expect(JSON.stringify(history)).not.toContain("<memories>");
  });

  it("gives Anthropic's instructions beside the messages, which begin with the user's", async () => {
    const question = { role: "user", content: "Where?" };
    const { messages, system } = await compose({ format: "messages", system: "Be brief.", messages: [question] });
    expect({ messages, system }).toEqual({ messages: [question], system: "Be brief." });
    const call = { role: "assistant", content: [{ type: "tool_use", id: "t", name: "n", input: {} }] };
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "mild" }] };
    const recognised = await compose({
      system: "Be brief.",
      messages: [question, call, result],
      memories: memories(1),
    });
    expect(recognised.system).toBe("Be brief.");
    expect(recognised.messages.slice(0, 2)).toEqual([question, call]);
    // The API wants results first in their message.
    expect(partsOf(recognised.messages[2]?.["content"]).map(({ type }) => type)).toEqual(["tool_result", "text"]);
  });

  it("counts stable messages in the caller's", async () => {
    const call = { type: "function_call", call_id: "c", name: "n", arguments: "{}" };
    const reasoning = { type: "reasoning", id: "r", summary: [], encrypted_content: "x" };
    const asked = [{ type: "message", role: "user", content: "Where?" }];
    await compose({ conversation_id: "stable", messages: asked, memories: memories(1) });
    const { messages, plan } = await compose({
      conversation_id: "stable",
      messages: [...asked, reasoning, call, { type: "function_call_output", call_id: "c", output: "here" }],
    });
    expect(messages.map(({ type }) => type)).toEqual(["message", "reasoning", "function_call", "function_call_output"]);
    expect(plan.stable_messages).toBe(1);
  });

  it("gives a window its earlier messages back as the API's own", async () => {
    const said = (n: number) => [
      { type: "message", role: "user", content: `Question ${n}?` },
      { type: "function_call", id: `fc_${n}`, call_id: `c${n}`, name: "n", arguments: '{"a": 1}', status: "completed" },
      { type: "function_call_output", call_id: `c${n}`, output: `Result ${n}` },
      {
        type: "message",
        id: `m_${n}`,
        role: "assistant",
        content: [{ type: "output_text", text: `Answer ${n}.`, annotations: [] }],
      },
    ];
    const history = [1, 2, 3].flatMap(said);
    const asked = { type: "message", role: "user", content: "Now?" };
    for (const end of [1, 5, 9])
      await compose({
        conversation_id: "window",
        history: "extended",
        messages: history.slice(Math.max(0, end - 5), end),
      });
    const { messages } = await compose({
      conversation_id: "window",
      history: "extended",
      messages: [...history.slice(4), asked],
    });
    expect(messages).toEqual([...history, asked]);
  });

  it.each([
    [
      "another format's",
      { format: "chat", messages: [{ type: "function_call_output", call_id: "c", output: "mild" }] },
      "messages[0].role",
    ],
    ["no such format", { format: "gemini", messages: [{ role: "user", content: "x" }] }, "format"],
    [
      "an answer last",
      { format: "responses", messages: [{ type: "function_call", call_id: "c", name: "n", arguments: "" }] },
      "messages",
    ],
    ["no message", { format: "messages", messages: [7] }, "messages[0]"],
    ["no list", { messages: "Where?" }, "messages"],
  ])("rejects %s, and names the field", async (_what, body, field) => {
    const { status, answer } = await post(body);
    expect(status).toBe(422);
    expect(
      z.looseObject({ errors: z.array(z.looseObject({ field: z.string() })) }).parse(answer).errors[0]?.field,
    ).toBe(field);
  });
});
