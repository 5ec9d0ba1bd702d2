import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  changedInstructions,
  firstChangedLine,
  type InstructionChange,
} from "../../../src/core/conversation/instructions.js";
import { messageText } from "../../../src/core/text/message.js";
import { Chat, memories, system, toolExchange, UserScope } from "../compose/scope-fixture.js";

const RULES = "Be kind.\nBe brief.\nName your source.";
const changed = (first: string, now: string) => changedInstructions([system(first)], [system(now)]);

describe("what changed of instructions", () => {
  it.each<[string, string, string, InstructionChange | null]>([
    ["nothing", RULES, RULES, { lines: [], removed: [] }],
    ["a line for a line", `${RULES}\nIt is 10:05.`, `${RULES}\nIt is 10:06.`, { lines: ["It is 10:06."], removed: [] }],
    ["a new line", RULES, `${RULES}\nIt is ten.`, { lines: ["It is ten."], removed: [] }],
    ["a line that is gone", `${RULES}\n- tea`, RULES, { lines: [], removed: ["- tea"] }],
    [
      "a sentence where there are no lines",
      "Be kind. It is ten. Be brief, and name your source.",
      "Be kind. It is one. Be brief, and name your source.",
      { lines: ["It is one."], removed: [] },
    ],
    ["most of it", RULES, "You review code now.", null],
    ["only blank lines", RULES, RULES.replace("\n", "\n\n"), { lines: [], removed: [] }],
  ])("is %s", (_, first, now, expected) => {
    expect(changed(first, now)).toEqual(expected);
  });

  it("is unknown of other messages, and of parts that are no text", () => {
    expect(changedInstructions([system(RULES)], [system(RULES), system("It is ten.")])).toBeNull();
    expect(changedInstructions([{ role: "developer", content: RULES }], [system(RULES)])).toBeNull();
    const image = { role: "system", content: [{ type: "image_url", image_url: {} }] };
    expect(changedInstructions([image], [image])).toBeNull();
  });

  it("leaves no line unsaid, in whatever order lines come and go", () => {
    const text = fc.array(fc.constantFrom("a one", "b two", "c three", "d four", "e five"), { maxLength: 8 });
    fc.assert(
      fc.property(text, text, (before, now) => {
        const base = "These rules stay as they are. ".repeat(20);
        const change = changed([base, ...before].join("\n"), [base, ...now].join("\n"));
        const lines = new Set(change?.lines);
        for (const line of now) expect(before.includes(line) || lines.has(line)).toBe(true);
        expect(new Set([...before, ...(change?.lines ?? [])])).toEqual(new Set([...before, ...now]));
      }),
    );
  });

  it("has a first line", () => {
    expect(firstChangedLine([system(`${RULES}\nOne`)], [system(`${RULES}\nTwo`)])).toEqual({ line: 4, text: "Two" });
    expect(firstChangedLine([system(`${RULES}\nOne`)], [system(RULES)])).toEqual({ line: 4, text: "" });
    expect(firstChangedLine([system(RULES)], [system(RULES)])).toBeNull();
  });
});

describe("a conversation that keeps its instructions", () => {
  const options = { keepsInstructions: true };
  const rules = (line: string) => `${"Be kind, be brief, and name your source. ".repeat(9)}\n${line}`;

  it("takes the newest text with a fresh start, and says nothing of it", () => {
    const scope = new UserScope();
    const chat = new Chat(scope, "chat", rules("It is 10:00."), options);
    const headOf = (turn: number) => {
      chat.history[0] = system(rules(`It is 10:0${turn}.`));
      const found = memories(...Array.from({ length: 6 }, (_, n) => `thing ${turn}-${n}`));
      const composition = chat.ask(`Question ${turn}?`, found, { maxPromptTokens: 420 });
      chat.answer(`Answer ${turn}.`);
      return composition;
    };
    const turns = [0, 1, 2, 3, 4, 5].map(headOf);
    const starts = turns.map(({ plan }) => plan.freshStart);
    expect(starts.slice(1)).toContain(true);
    let kept = 0;
    for (const [turn, { messages, annotations, plan }] of turns.entries()) {
      if (starts[turn] === true) kept = turn;
      expect(messageText(messages[0] ?? system(""))).toBe(rules(`It is 10:0${kept}.`));
      const said = annotations.filter((line) => line.startsWith("Updated instructions:"));
      expect(said).toEqual(kept === turn ? [] : [`Updated instructions: It is 10:0${turn}.`]);
      if (kept !== turn) expect(plan.miss).toBeNull();
    }
  });

  it.each([true, false])("knows what it said where a client sends it back, in a tool's result: %s", (inResult) => {
    const asked = (scope: UserScope) => {
      const chat = new Chat(scope, "chat", rules("It is 10:00."), { ...options, inResult });
      chat.ask("One?");
      chat.history.push(...toolExchange("found"));
      chat.history[0] = system(rules("It is 10:01."));
      return { chat, composed: chat.again() };
    };
    const ended = (chat: Chat) => {
      chat.answer("Yes.");
      return chat.ask("Two?");
    };
    const plain = ended(asked(new UserScope()).chat);
    const { chat, composed } = asked(new UserScope());
    expect(composed.annotations).toEqual(["Updated instructions: It is 10:01."]);
    chat.history.splice(1, chat.history.length, ...composed.messages.slice(1));
    const sentBack = ended(chat);
    expect(sentBack.messages).toEqual(plain.messages);
    expect(sentBack.warnings.map(({ code }) => code)).toEqual(["injected_text_removed"]);
  });
});
