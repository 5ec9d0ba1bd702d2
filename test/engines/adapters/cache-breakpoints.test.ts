import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/index.js";
import type { AdapterPrompt, EngineName } from "../../../src/engines/adapters/engine-adapter.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { answered, asked, marksIn, promptOf, system } from "./prompts.js";

const FIELDS = { anthropic: "cache_control", "openai-breakpoints": "prompt_cache_breakpoint" } as const;

function marks(engine: keyof typeof FIELDS & EngineName, prompt: AdapterPrompt) {
  return marksIn(ENGINES[engine].emit(prompt).messages, FIELDS[engine]);
}

const marked = (text: string): ChatMessage => ({
  role: "system",
  content: [{ type: "text", text, cache_control: { type: "ephemeral", ttl: "1h" } }],
});
const onTools = (count: number) => ({ tools: Array(count).fill({ type: "ephemeral", ttl: "1h" }), automatic: null });
const conversation = [system, asked("Tea?"), answered, asked("Where?", 1, true)];
const goingOn = { reusableMessages: [3, 0], reusableMemories: 3, cachedMessage: 1 };

describe("cache marks", () => {
  it("stand at the end, after the memories, at the instructions, and where the last prompt ended", () => {
    for (const engine of ["anthropic", "openai-breakpoints"] as const) {
      expect(marks(engine, promptOf(conversation, goingOn))).toEqual([
        [0, 0],
        [1, 1],
        [3, 0],
        [3, 1],
      ]);
    }
  });

  it("leave the caller's as they are, and are the most useful of what is left", () => {
    const callers = [marked("a"), marked("b"), marked("c"), ...conversation.slice(1)];
    const prompt = promptOf(callers, { reusableMessages: [5, 2], reusableMemories: 5, cachedMessage: 3 });
    expect(marks("anthropic", prompt)).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [5, 1],
    ]);
    expect(ENGINES.anthropic.emit(prompt).messages.slice(0, 3)).toEqual(callers.slice(0, 3));
    expect(marks("anthropic", { ...prompt, marksElsewhere: onTools(1) })).toHaveLength(3);
  });

  it("find the last prompt again before they write anything, where the provider would not look that far back", () => {
    const scarce = { ...goingOn, marksElsewhere: onTools(3) };
    expect(marks("openai-breakpoints", promptOf(conversation, scarce))).toEqual([[1, 1]]);
    expect(marks("anthropic", promptOf(conversation, scarce))).toEqual([[3, 1]]);
    const results = Array.from({ length: 19 }, (_, at) => ({ role: "tool", tool_call_id: `c${at}`, content: "ok" }));
    const long = [...conversation.slice(0, 3), ...results, asked("Where?", 1)];
    const far = { reusableMessages: [long.length - 1, 0], cachedMessage: 1, marksElsewhere: onTools(3) };
    expect(marks("anthropic", promptOf(long, far))).toEqual([[1, 1]]);
    expect(marks("anthropic", promptOf(long.toSpliced(3, 3), { ...far, reusableMessages: [19, 0] }))).toEqual([
      [19, 1],
    ]);
  });

  it("go to the last message before that can carry one", () => {
    const answerLast = promptOf([system, asked("Tea?"), answered], { reusableMessages: [2] });
    expect(marks("anthropic", answerLast)).toEqual([[2, 0]]);
    expect(marks("openai-breakpoints", answerLast)).toEqual([[1, 1]]);
    const nothing = promptOf([{ role: "assistant", content: "Hi" }], { reusableMessages: [0] });
    expect(marks("openai-breakpoints", nothing)).toEqual([]);
    expect(ENGINES["openai-breakpoints"].emit(nothing).fields).not.toHaveProperty("prompt_cache_options");
  });
});
