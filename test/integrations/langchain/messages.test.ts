import {
  AIMessage,
  type BaseMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { baseMessageOf, chatMessageOf } from "../../../src/integrations/langchain-messages.js";
import { composeMessages } from "../../../src/integrations/langgraph.js";
import { agentTrial } from "./agent-trial.js";

class MarkedQuestion extends HumanMessage {
  readonly mark = "own";
}

const IMAGE = { type: "image", url: "https://example.com/cat.png" } as const;
const usage = { input_tokens: 12, output_tokens: 3, total_tokens: 15, input_token_details: { cache_read: 8 } };
const call = { id: "call_1", name: "weather", args: { city: "Porto" }, type: "tool_call" } as const;

/** Messages of every class, with everything that they can have. */
function everything(): BaseMessage[] {
  return [
    new SystemMessage({ content: "Be brief.", additional_kwargs: { __openai_role__: "developer" } }),
    new HumanMessage({ content: "Weather?", name: "ana", id: "q1", additional_kwargs: { from: "phone" } }),
    new AIMessage({
      content: [{ type: "text", text: "I look.", annotations: [] }],
      id: "msg_1",
      tool_calls: [call, { ...call, id: "call_2", ...{ call_id: "c" } }],
      invalid_tool_calls: [{ id: "call_3", name: "weather", args: "{", error: "none", type: "invalid_tool_call" }],
      additional_kwargs: { reasoning: { id: "rs_1", summary: [] } },
      response_metadata: { model_provider: "openai", output: [{ id: "rs_1", type: "reasoning", summary: [] }] },
      usage_metadata: usage as never,
    }),
    new ToolMessage({ content: "12 degrees", tool_call_id: "call_1", status: "success", name: "weather" }),
    new ToolMessage({ content: [{ type: "text", text: "Rain" }, IMAGE], tool_call_id: "call_2", status: "error" }),
    new AIMessage({
      contentBlocks: [
        { type: "reasoning", reasoning: "So." },
        { type: "text", text: "Rain." },
      ],
    }),
    new FunctionMessage({ content: "1", name: "count" }),
    new ChatMessage({ content: "Be kind.", role: "critic" }),
    new HumanMessage({ contentBlocks: [{ type: "text", text: "And this?" }, IMAGE] }),
  ];
}

function whole(message: BaseMessage) {
  const { lc_kwargs: _arguments, ...fields } = message;
  return { class: message.constructor, fields, text: message.text, blocks: message.contentBlocks };
}

describe("a message as memprefix's store keeps it", () => {
  it.each(everything().map((message, at) => [at, message.constructor.name, message] as const))(
    "%i, %s: comes back as the same",
    (_at, _class, message) => {
      const stored = JSON.parse(JSON.stringify(chatMessageOf(message))) as ReturnType<typeof chatMessageOf>;
      expect(whole(baseMessageOf(stored))).toEqual(whole(message));
    },
  );
});

describe("the messages of a chain", () => {
  const trial = agentTrial();
  const compose = (messages: BaseMessage[], options: object = {}) =>
    composeMessages({ memprefix: trial.memprefix, userId: "ana", ...trial.options, ...options }, messages);

  it("are the given ones, but for those that have memories now", async () => {
    const given = everything();
    const before = JSON.stringify(given);
    const { messages } = await compose(given, { conversationId: "trip" });
    expect(trial.errors).toEqual([]);
    expect(messages).toHaveLength(given.length);
    const changed = messages.filter((message, at) => message !== given[at]);
    expect(changed.length).toBeGreaterThan(0);
    for (const message of changed) expect(JSON.stringify(message)).toContain("<memories>");
    expect(JSON.stringify(given)).toBe(before);
  });

  const questions: readonly (readonly [string, HumanMessage])[] = [
    ["a text", new MarkedQuestion({ content: "And this?", name: "ana", id: "q1", additional_kwargs: { a: 1 } })],
    ["parts", new HumanMessage({ content: [{ type: "text", text: "And this?" }, IMAGE], id: "q1" })],
    ["standard blocks", new HumanMessage({ contentBlocks: [{ type: "text", text: "And this?" }, IMAGE], id: "q1" })],
  ];
  it.each(questions)("a question that is %s keeps all but its content", async (_form, question) => {
    const { messages } = await compose([question]);
    const [asked] = messages;
    expect(asked).not.toBe(question);
    expect(asked?.constructor).toBe(question.constructor);
    const { content, lc_kwargs, ...others } = asked as HumanMessage;
    const { content: own, lc_kwargs: ownKwargs, ...ownOthers } = question;
    expect(others).toEqual(ownOthers);
    expect(asked?.text).toMatch(/^<memories>\n[\s\S]+<\/memories>[\s\S]*And this\?$/);
    if (typeof own !== "string") expect((content as unknown[]).at(-1)).toBe((own as unknown[]).at(-1));
    expect(JSON.stringify(asked)).toContain("<memories>");
    expect(trial.errors).toEqual([]);
  });

  it("have a message of memories behind a tool's result, or in it", async () => {
    const results = [
      new HumanMessage("Weather?"),
      new AIMessage({ content: "", tool_calls: [call] }),
      new ToolMessage({ content: "12 degrees", tool_call_id: "call_1", artifact: { raw: 12 } }),
    ];
    const { messages } = await compose(results);
    expect(messages.slice(0, 3)).toEqual(results);
    expect(messages.slice(0, 3).every((message, at) => message === results[at])).toBe(true);
    expect(messages[3]).toBeInstanceOf(HumanMessage);
    const { messages: inResult } = await compose(results, { compose: { model: "qwen3" } });
    expect(inResult[2]).toBeInstanceOf(ToolMessage);
    expect(inResult[2]).toMatchObject({ tool_call_id: "call_1", artifact: { raw: 12 } });
    expect(inResult[2]?.text).toContain("12 degrees\n\n<memories>");
  });

  it("that were cut come back with everything that they had", async () => {
    const named = { conversationId: "trip", compose: { history: "extended", historyRatio: 100 } };
    const all = everything();
    await compose(all, named);
    const next = [...all, new AIMessage("A cat."), new HumanMessage("Thanks")];
    const { messages } = await compose(next.slice(-3), named);
    expect(trial.errors).toEqual([]);
    const back = messages.slice(0, all.length - 2);
    expect(back.map(whole)).toEqual(all.slice(1, -1).map(whole));
  });

  it("are recognised where a client makes them anew, and their answers reported", async () => {
    const model = trial.model("gpt-5-mini");
    const texts: string[] = [];
    const cached: number[] = [];
    for (const question of ["Where to?", "And then?", "And after that?"]) {
      texts.push(question);
      const given = texts.map((text, at) => (at % 2 === 0 ? new HumanMessage(text) : new AIMessage(text)));
      const onComposed = ({ plan }: { plan: { expectedCachedTokens: number } }) =>
        cached.push(plan.expectedCachedTokens);
      const { messages, report } = await compose(given, { conversationId: "trip", onComposed });
      const answer = await model.invoke(messages);
      await report(answer);
      texts.push(answer.text);
    }
    expect(cached[0]).toBe(0);
    expect(cached[1]).toBeGreaterThan(0);
    expect(cached[2]).toBeGreaterThan(cached[1] ?? 0);
    expect(trial.errors).toEqual([]);
  });
});
