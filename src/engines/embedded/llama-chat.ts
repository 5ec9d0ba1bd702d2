import type { ChatHistoryItem, ChatWrapper, LlamaModel, LlamaText, Token } from "node-llama-cpp";
import { type ChatMessage, isInstruction, messageText, type TokenCounter } from "../../core/index.js";
import type { LlamaModule } from "./load-llama.js";

/** A chat as a model reads it. */
export interface ChatTokens {
  /** The chat in the model's own template, up to where its answer begins. */
  readonly tokens: readonly Token[];
  /** Tokens that end the answer, beside those that the model's file names. */
  readonly stopTokens: ReadonlySet<Token>;
  /** Texts that end the answer. */
  readonly stopTexts: readonly string[];
}

/**
 * Writes chats in the template that the model's file brings. Text of messages never becomes a token of the template, whatever it says.
 * Only text is read of a message; a role that no template has (`tool`) counts as `user`.
 */
export function chatTokenizer({ resolveChatWrapper }: LlamaModule, model: LlamaModel) {
  const wrapper: ChatWrapper = resolveChatWrapper(model, { warningLogs: false });
  return (messages: readonly ChatMessage[]): ChatTokens => {
    const chatHistory = [...messages.map(historyItem), { type: "model" as const, response: [] }];
    const { contextText, stopGenerationTriggers } = wrapper.generateContextState({ chatHistory });
    return { tokens: contextText.tokenize(model.tokenizer), ...stopsOf(stopGenerationTriggers, model) };
  };
}

/** Counts what this model's tokenizer makes of a text, and what its template adds to one. */
export function modelTokenCounter(
  model: LlamaModel,
  tokensOf: (messages: readonly ChatMessage[]) => ChatTokens,
): TokenCounter {
  const tokens = (text: string) => model.tokenize(text, false).length;
  // More text follows on white space, and of that a tokenizer makes other tokens where it ends the text.
  const count = (text: string) => (/\s$/.test(text) ? tokens(`${text}a`) - tokens("a") : tokens(text));
  const chat = (roles: readonly string[], content: string) => tokensOf(roles.map((role) => ({ role, content }))).tokens;
  const alone = chat(["user"], "a");
  /** Of messages that stand beside a user's, less their texts: so what a template adds once is left out. */
  const around = (...roles: readonly string[]) =>
    Math.max(0, chat([...roles, "user"], "a").length - alone.length - roles.length * count("a"));
  const user = around("user");
  const system = around("system");
  // Some templates take turns only.
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
