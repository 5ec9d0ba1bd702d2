import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withBlockSeparators } from "../../../src/engines/adapters/block-separators.js";
import { ENGINES } from "../../../src/engines/adapters/engines.js";
import { describeEngineAdapter } from "./engine-adapter.suite.js";
import { anyPrompt, asked, promptOf, system, textOf } from "./prompts.js";

const SEPARATOR = "<|fim_pad|>";
const adapter = withBlockSeparators(ENGINES.vllm, SEPARATOR);

describeEngineAdapter(adapter, null, {
  "never changes the text of a message, nor what else it has": "separators are text: LMCache finds them there",
});

describe("separators for LMCache", () => {
  it("stand before every block of memories and behind the last, and nowhere else", () => {
    const { messages, fields } = adapter.emit(promptOf([system, asked("Tea?", 2, true)]));
    expect(messages).toEqual([
      system,
      {
        role: "user",
        content:
          "<memories>\n<|fim_pad|>1 fact 1\n  and more\n<|fim_pad|>2 fact 2\n  and more\n<|fim_pad|>Given earlier: [9].\n</memories>\n\nTea?",
      },
    ]);
    expect(fields).toEqual(ENGINES.vllm.emit(promptOf([system])).fields);
  });

  it("are all that is added", () => {
    fc.assert(
      fc.property(anyPrompt, (prompt) => {
        const { messages } = adapter.emit(prompt);
        const without = messages.map((message) => textOf(message).replaceAll(SEPARATOR, ""));
        expect(without).toEqual(prompt.messages.map(textOf));
      }),
    );
  });
});
