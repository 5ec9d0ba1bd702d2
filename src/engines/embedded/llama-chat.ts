import type { ChatHistoryItem, ChatWrapper, LlamaModel, LlamaText, Token } from "node-llama-cpp";
import { type ChatMessage, isInstruction, messageText, type TokenCounter } from "../../core/index.js";
import type { LlamaModule } from "./load-llama.js";

/** A chat, tokenized. */
export interface ChatTokens {
  /** The chat in the model's template, with the generation prompt. */
  readonly tokens: readonly Token[];
  /** Tokens that end the answer, beside the model's end-of-generation tokens. */
  readonly stopTokens: ReadonlySet<Token>;
  /** Texts that end the answer. */
  readonly stopTexts: readonly string[];
}

/**
 * Applies the chat template of the model's file. Message text never becomes a special token. Only text is read; a role that no template
 * knows (`tool`) counts as `user`. The prompt begins as llama.cpp's server has it begin: with one BOS where the model's file or its template
 * says so, with none elsewhere. `node-llama-cpp` puts one before most templates: before `<|im_start|>`, too, where that is the BOS.
 */
export function chatTokenizer({ resolveChatWrapper, SpecialToken }: LlamaModule, model: LlamaModel) {
  const wrapper: ChatWrapper = resolveChatWrapper(model, { warningLogs: false });
  const { bos, shouldPrependBosToken } = model.tokens;
  const isInTemplate = model.fileInfo.metadata.tokenizer?.chat_template?.includes("bos_token") ?? false;
  const tokensOf = (text: LlamaText): readonly Token[] => {
    const tokens = text.tokenize(model.tokenizer);
    if (bos === null) return tokens;
    const [first] = text.values;
    const isPutBefore = first instanceof SpecialToken && first.value === "BOS";
    if (isPutBefore && (tokens[1] === bos || !(shouldPrependBosToken || isInTemplate))) return tokens.slice(1);
    return shouldPrependBosToken && tokens[0] !== bos ? [bos, ...tokens] : tokens;
  };
  return (messages: readonly ChatMessage[]): ChatTokens => {
    const chatHistory = [...messages.map(historyItem), { type: "model" as const, response: [] }];
    const { contextText, stopGenerationTriggers } = wrapper.generateContextState({ chatHistory });
    return { tokens: tokensOf(contextText), ...stopsOf(stopGenerationTriggers, model) };
  };
}

/** Counts tokens with the model's tokenizer, and measures what its template adds per message. */
export function modelTokenCounter(
  model: LlamaModel,
  tokensOf: (messages: readonly ChatMessage[]) => ChatTokens,
): TokenCounter {
  const tokens = (text: string) => model.tokenize(text, false).length;
  // Trailing white space is tokenized differently at the end of a text, and here more text follows.
  const count = (text: string) => (/\s$/.test(text) ? tokens(`${text}a`) - tokens("a") : tokens(text));
  const chat = (roles: readonly string[], content: string) => tokensOf(roles.map((role) => ({ role, content }))).tokens;
  const alone = chat(["user"], "a");
  /** Tokens that messages of these roles add, less their texts. Measured before a user message, to leave out what a template adds once. */
  const around = (...roles: readonly string[]) =>
    Math.max(0, chat([...roles, "user"], "a").length - alone.length - roles.length * count("a"));
  const user = around("user");
  const system = around("system");
  // Some templates require alternating roles.
  const assistant = Math.max(0, around("user", "assistant") - user);
  const other = chat(["user"], "b");
  const beforeText = alone.findIndex((token, at) => token !== other[at]);
  const perMessage = (role: string) => {
    if (isInstruction({ role })) return system;
    return role === "assistant" ? assistant : user;
  };
  return Object.assign(count, { template: { perMessage, beforeText } });
}

function historyItem(message: ChatMessage): ChatHistoryItem {
  const text = messageText(message);
  if (isInstruction(message)) return { type: "system", text };
  return message.role === "assistant" ? { type: "model", response: [text] } : { type: "user", text };
}

function stopsOf(triggers: readonly LlamaText[], model: LlamaModel): Omit<ChatTokens, "tokens"> {
  const stopTokens = new Set<Token>();
  const stopTexts: string[] = [];
  for (const trigger of triggers) {
    const [value, ...others] = trigger.values;
    if (typeof value === "string") {
      if (others.length === 0) stopTexts.push(value);
      continue;
    }
    const [token, ...more] = trigger.tokenize(model.tokenizer);
    if (token !== undefined && more.length === 0) stopTokens.add(token);
  }
  return { stopTokens, stopTexts };
}
