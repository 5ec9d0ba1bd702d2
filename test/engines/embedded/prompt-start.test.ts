import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ChatWrapper, Llama, LlamaModel, Token } from "node-llama-cpp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chatTokenizer, type LlamaModule } from "../../../src/engines/embedded/llama.js";
import { ENGINES_FOLDER } from "../../real-engines/install.js";
import { llamaMissing, tinyModel } from "../random-model/tiny-model.js";

const missing = await llamaMissing();
/** What the package has for families of models. */
const WRAPPERS = [
  ...(["ChatMLChatWrapper", "QwenChatWrapper", "Llama3ChatWrapper", "Llama3_1ChatWrapper"] as const),
  ...(["Llama2ChatWrapper", "MistralChatWrapper", "GemmaChatWrapper", "DeepSeekChatWrapper"] as const),
  ...(["FalconChatWrapper", "FunctionaryChatWrapper", "GeneralChatWrapper", "AlpacaChatWrapper"] as const),
  ...(["HarmonyChatWrapper", "SeedChatWrapper"] as const),
] as const;
const CHAT = [
  { role: "system", content: "You are kind." },
  { role: "user", content: "Hello" },
];

describe.skipIf(missing !== null)(`how a prompt begins${missing === null ? "" : ` (skipped: ${missing})`}`, () => {
  const file = tinyModel();
  let module: LlamaModule;
  let llama: Llama;
  let model: LlamaModel;
  beforeAll(async () => {
    module = await import("node-llama-cpp");
    llama = await module.getLlama({ gpu: false, build: "never", logLevel: module.LlamaLogLevel.error });
    model = await llama.loadModel({ modelPath: file.path });
  });
  afterAll(() => llama?.dispose());

  /** The tokens of a chat, of a model whose file says this of its BOS. */
  const tokensOf = (wrapper: ChatWrapper, shouldPrependBosToken: boolean, template: string): readonly Token[] => {
    const { bos } = model.tokens;
    const told = Object.create(model, {
      tokens: { value: { bos, shouldPrependBosToken } },
      tokenizer: { value: model.tokenizer },
      fileInfo: { value: { metadata: { tokenizer: { chat_template: template } } } },
    }) as LlamaModel;
    return chatTokenizer({ ...module, resolveChatWrapper: () => wrapper } as LlamaModule, told)(CHAT).tokens;
  };
  const leading = (tokens: readonly Token[]) => tokens.findIndex((token) => token !== model.tokens.bos);

  it.each(WRAPPERS)("has one BOS where the file says so, and none where neither file nor template do: %s", (name) => {
    const wrapper: ChatWrapper = new module[name]();
    const told = tokensOf(wrapper, true, "{{ messages }}");
    expect(leading(told)).toBe(1);
    const untold = tokensOf(wrapper, false, "{{ messages }}");
    expect(leading(untold)).toBe(0);
    expect(untold).toEqual(told.slice(1));
    expect(leading(tokensOf(wrapper, true, "{{ bos_token }}{{ messages }}"))).toBe(1);
    expect(leading(tokensOf(wrapper, false, "{{ bos_token }}{{ messages }}"))).toBeLessThanOrEqual(1);
  });
});

describe.skipIf(missing !== null)("a prompt to trained weights", () => {
  const path = (name: string) => join(ENGINES_FOLDER, "models", `${name}.gguf`);

  // As vLLM's and llama.cpp's /tokenize have it.
  const counts = [
    ["smol", 19],
    ["qwen", 18],
  ] as const;
  const isThere = counts.every(([name]) => existsSync(path(name)));
  const skipped = isThere ? "" : " (skipped: npm run engines installs them)";
  it.skipIf(!isThere).each(counts)(`has the tokens that other engines count: %s${skipped}`, async (name, tokens) => {
    const module = await import("node-llama-cpp");
    const llama = await module.getLlama({ gpu: false, build: "never", logLevel: module.LlamaLogLevel.error });
    const model = await llama.loadModel({ modelPath: path(name), vocabOnly: true } as never);
    expect(chatTokenizer(module, model)(CHAT).tokens).toHaveLength(tokens);
    await llama.dispose();
  });
});
