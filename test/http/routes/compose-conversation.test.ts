import { describe, expect, it } from "vitest";
import { servedApp } from "../server/served-app.js";

const tea = { id: "m-tea", memory: "Ada drinks green tea" };
const paris = { id: "m-paris", memory: "Ada lives in Paris" };
const bicycle = { id: "m-bicycle", memory: "Ada rides a bicycle" };

const turns = [
  { question: "Where does Ada live?", memories: [paris, tea], answer: "In Paris." },
  { question: "And how does she get around?", memories: [bicycle, paris], answer: "By bicycle." },
  { question: "What does she drink?", memories: [tea, { id: "m-paris", memory: "Ada lives in Lyon" }], answer: "Tea." },
  { question: "Thank you!", memories: [], answer: "You are welcome." },
];

describe("POST /compose in a conversation", () => {
  const app = servedApp();

  /** Asks every question as an agent does: with plain history and this turn's memories. Gives back what each prompt was. */
  async function converse(system?: string) {
    const history: { role: string; content: string }[] = [];
    const answers = [];
    for (const { question, memories, answer } of turns) {
      history.push({ role: "user", content: question });
      answers.push(
        await app.compose({
          user_id: "ada",
          conversation_id: "trip",
          system,
          messages: history,
          memories,
        }),
      );
      history.push({ role: "assistant", content: answer });
    }
    return answers;
  }

  it.each([undefined, "Be brief."])(
    "begins every turn with the bytes of the turn before (system: %s)",
    async (system) => {
      const answers = await converse(system);
      for (const [at, { messages }] of answers.entries()) {
        if (at === 0) continue;
        const before = [...(answers[at - 1]?.messages ?? []), { role: "assistant", content: turns[at - 1]?.answer }];
        expect(JSON.stringify(messages.slice(0, before.length))).toBe(JSON.stringify(before));
        expect(messages).toHaveLength(before.length + 1);
      }
    },
  );

  it("gives each text once, what is new of an old one after the list, and quotes the best of what was given earlier", async () => {
    const answers = await converse();
    expect(answers.map(({ blocks }) => blocks.map(({ label, placement }) => `${label} ${placement}`))).toEqual([
      ["1 new", "2 new"],
      ["3 new", "1 earlier_turn"],
      ["4 new", "2 earlier_turn"],
      [],
    ]);
    expect(answers.map(({ annotations }) => annotations)).toEqual([
      [],
      [],
      ["Update: Ada lives in Lyon", "Most relevant: Ada drinks green tea"],
      [],
    ]);
    const last =
      answers
        .at(-1)
        ?.messages.map(({ content }) => content)
        .join("\n") ?? "";
    for (const text of ["Ada drinks green tea", "Ada lives in Paris", "Ada rides a bicycle"]) {
      expect(last.split(`- ${text}`)).toHaveLength(2);
    }
    expect(last).toContain("<memories>\n</memories>\nUpdate: Ada lives in Lyon\n");
    expect(last.split("Ada lives in Lyon")).toHaveLength(2);
  });

  it("expects everything but the new turn to be cached", async () => {
    const answers = await converse();
    expect(answers.map(({ plan }) => plan.layout)).toEqual(turns.map(() => "conversation"));
    expect(answers.map(({ plan }) => plan.stable_messages)).toEqual([0, 1, 3, 5]);
    for (const [at, { plan }] of answers.entries()) {
      expect(plan.expected_cached_tokens + plan.uncached_tokens).toBe(plan.total_tokens);
      expect(plan.expected_cached_tokens).toBe(at === 0 ? 0 : answers[at - 1]?.plan.total_tokens);
    }
  });

  it("takes a history back that still has the injected text in it", async () => {
    const [first] = await converse();
    const answer = await app.compose({
      user_id: "ada",
      conversation_id: "trip",
      messages: [
        ...(first?.messages ?? []),
        { role: "assistant", content: "In Paris." },
        { role: "user", content: "So?" },
      ],
      memories: [paris],
    });
    expect(answer.messages.slice(0, 1)).toEqual(first?.messages);
    expect(answer.warnings.map(({ code }) => code)).toContain("injected_text_removed");
  });

  it("goes on after a tool's result", async () => {
    const question = { role: "user", content: "Weather?" };
    const call = {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } }],
    };
    const result = { role: "tool", tool_call_id: "call_1", content: "Sunny" };
    const at = { user_id: "ada", conversation_id: "tools" };
    const first = await app.compose({ ...at, messages: [question], memories: [paris] });
    const second = await app.compose({ ...at, messages: [question, call, result], memories: [bicycle] });
    expect(second.messages.slice(0, 3)).toEqual([...first.messages, call, result]);
    expect(second.messages.slice(3)).toEqual([
      { role: "user", content: `<memories>\n- ${bicycle.memory}\n</memories>` },
    ]);
  });
});
