import { Template } from "@huggingface/jinja";
import { describe, expect, it } from "vitest";
import { keepsThoughtsBehindUser, keepsThoughtsByName } from "../../../src/engines/adapters/kept-thoughts.js";
import { CHAT_TEMPLATES } from "./chat-templates.js";

const CALL = { id: "c", type: "function", function: { name: "look_up", arguments: "{}" } };
const STEP = [
  { role: "user", content: "Where is it?" },
  { role: "assistant", content: "", reasoning_content: "I have to look.", tool_calls: [CALL] },
  { role: "tool", tool_call_id: "c", content: "In the hall." },
];
const render = (template: string, messages: readonly object[]) => new Template(template).render({ messages });

describe("a chat template", () => {
  it.each(Object.entries(CHAT_TEMPLATES))(
    "%s: is told to keep thoughts behind the newest user's message where it does",
    (_name, { template, keepsThoughts }) => {
      // What it does, not what was written about it.
      const alone = render(template, STEP);
      const behind = render(template, [...STEP, { role: "user", content: "<memories>…</memories>" }]);
      expect(alone.includes("I have to look.") && !behind.includes("I have to look.")).toBe(keepsThoughts);
      expect(keepsThoughtsBehindUser(template)).toBe(keepsThoughts);
      for (const other of [
        template.replaceAll("{%-", "{%").replaceAll("-%}", "%}"),
        template.replaceAll(/'(user)'/g, '"$1"'),
        template.replaceAll(/\.role\b/g, "['role']"),
      ])
        expect(keepsThoughtsBehindUser(other)).toBe(keepsThoughts);
    },
  );

  it("that is broken, endless or none says nothing", () => {
    const many = "{% if m.role == 'user' %}".repeat(50_000);
    for (const template of [
      ...["", "think", "{%", "think {{ {%", "{% endif %}think{% else %}"],
      `think${many}`,
      `think${"{".repeat(200_000)}`,
    ])
      expect(keepsThoughtsBehindUser(template)).toBe(false);
  });
});

describe("a model's name", () => {
  it.each([
    ...["Qwen/Qwen3-8B", "qwen3:8b", "qwen/qwen3-235b-a22b-thinking-2507", "Qwen3.5-397B-A17B", "qwen-3-32b"],
    "Qwen3-8B-Q4_K_M.gguf",
    ...["zai-org/GLM-4.5-Air", "z-ai/glm-4.6", "glm-4.7-flash:latest", "zai.glm-5"],
    "accounts/fireworks/models/glm-4p5",
    ...[
      "MiniMaxAI/MiniMax-M2",
      "XiaomiMiMo/MiMo-V2-Flash",
      "stepfun-ai/Step-3.5-Flash",
      "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    ],
    ...["deepseek-ai/DeepSeek-V3.2", "deepseek-chat", "deepseek-reasoner"],
  ])("%s says so", (name) => {
    expect(keepsThoughtsByName(name)).toBe(true);
  });

  it.each([
    ...["Qwen/Qwen2.5-7B-Instruct", "qwen2.5:32b", "Qwen1.5-110B", "zai-org/glm-4-9b-chat", "chatglm3-6b", "glm-4-32b"],
    ...["gpt-5", "claude-opus-4-8", "meta-llama/Llama-3.3-70B", "moonshotai/Kimi-K2-Thinking", "openai/gpt-oss-120b"],
    "MiniMax-Text-01",
    ...["deepseek-ai/DeepSeek-V3.1", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek-chat-v2", "stub-1", "", 7],
    null,
  ])("%s does not", (name) => {
    expect(keepsThoughtsByName(name)).toBe(false);
  });
});
