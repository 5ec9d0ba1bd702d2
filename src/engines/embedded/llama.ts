import { open } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import type {
  ChatHistoryItem,
  ChatWrapper,
  Llama,
  LlamaContextSequence,
  LlamaModel,
  LlamaText,
  Token,
} from "node-llama-cpp";
import { type ChatMessage, chooseSlot, isInstruction, messageText, type TokenCounter } from "../../core/index.js";
import { messageOf } from "../../core/text/thrown.js";
import { type AnswerToken, EmbeddedEngineError, type GenerationRequest, type LikelyToken } from "./generation.js";

const COMPLAINTS = 3;
const COMPLAINT_MS = 50;

/** `node-llama-cpp`, as it is imported. */
export type LlamaModule = typeof import("node-llama-cpp");

/** llama.cpp, loaded into this process. The process has one log: complaints go to the last one that loaded it. */
export interface LoadedLlama {
  readonly module: LlamaModule;
  readonly llama: Llama;
  /** llama.cpp's last error lines, which say more than its exceptions; empty for none. */
  complaint(): Promise<string>;
}

/**
 * Loads llama.cpp's prebuilt CPU binary; nothing is compiled or fetched. Throws {@link EmbeddedEngineError} where `node-llama-cpp`, an
 * optional package, is not installed or has no binary for this machine.
 */
export async function loadLlama(): Promise<LoadedLlama> {
  const module = await importLlama();
  let complaints: readonly string[] = [];
  try {
    const llama = await module.getLlama({
      gpu: false,
      build: "never",
      progressLogs: false,
      logLevel: module.LlamaLogLevel.error,
      logger: (_level, message) => {
        complaints = [...complaints, message.trim()].slice(-COMPLAINTS);
      },
    });
    return {
      module,
      llama,
      complaint: async () => {
        // Log lines come from another thread, later than the error.
        await setTimeout(COMPLAINT_MS);
        return complaints.join("; ");
      },
    };
  } catch (error) {
    throw new EmbeddedEngineError(
      "binary_missing",
      `node-llama-cpp has no binary that runs on this machine (${process.platform}-${process.arch}): ${messageOf(error)}`,
      { cause: error },
    );
  }
}

async function importLlama(): Promise<LlamaModule> {
  try {
    return await import("node-llama-cpp");
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
    if (!missing) throw error;
    throw new EmbeddedEngineError("package_missing", "node-llama-cpp is not installed: npm install node-llama-cpp", {
      cause: error,
    });
  }
}

const HEAD_BYTES = 24;
/** Tensors and metadata entries: more than any model has. */
const MOST_ENTRIES = 10_000_000n;

/**
 * Why a file cannot be a GGUF model, or null where it can. Reads its first bytes only. Needed because `node-llama-cpp` trusts the counts in
 * the header and, for a wrong one, reads past the file's end for minutes.
 */
export async function notGguf(path: string): Promise<string | null> {
  const head = Buffer.alloc(HEAD_BYTES);
  try {
    const file = await open(path, "r");
    try {
      if ((await file.read(head, 0, HEAD_BYTES, 0)).bytesRead < HEAD_BYTES) return "it is not a GGUF file";
    } finally {
      await file.close();
    }
  } catch (error) {
    return messageOf(error);
  }
  if (head.toString("latin1", 0, 4) !== "GGUF") return "it is not a GGUF file";
  const version = head.readUInt32LE(4);
  if (version < 2 || version > 3) return `GGUF version ${version} is not supported (2 and 3 are)`;
  const entries = [head.readBigUInt64LE(8), head.readBigUInt64LE(16)];
  return entries.some((number) => number > MOST_ENTRIES) ? "its header is not valid" : null;
}

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

/** A slot taken by a request. */
export interface TakenSlot {
  readonly sequence: LlamaContextSequence;
  /** Prompt tokens in the slot's KV cache; always fewer than the prompt has. */
  readonly cachedTokens: number;
  /** Returns the slot with its cache. */
  release(): void;
  /** Returns the slot empty, where its cache may be wrong. */
  discard(): Promise<void>;
}

interface Slot {
  readonly sequence: LlamaContextSequence;
  salt: string | undefined;
  lastUsed: number;
  free: boolean;
}

/** The slots of one engine: each caches the tokens of its last prompt and answer. */
export class LlamaSlots {
  readonly #slots: readonly Slot[];
  #uses = 0;

  constructor(sequences: readonly LlamaContextSequence[]) {
    this.#slots = sequences.map((sequence) => ({ sequence, salt: undefined, lastUsed: 0, free: true }));
  }

  /** Takes the best slot for a prompt, and truncates its cache to the shared prefix. Throws where none is free: the queue counts them. */
  async take(prompt: readonly Token[], salt: string | undefined): Promise<TakenSlot> {
    // The last token is always computed, for its logits.
    const reusable = prompt.slice(0, -1);
    const free = this.#slots.filter((slot) => slot.free);
    const choice = chooseSlot(
      free.map(({ sequence, salt, lastUsed }) => {
        const { firstDifferentIndex: shared } = sequence.compareContextTokens(reusable);
        return { salt, tokens: sequence.nextTokenIndex, shared, lastUsed };
      }),
      salt,
    );
    const slot = choice === undefined ? undefined : free[choice];
    if (slot === undefined) throw new RangeError("no slot is free");
    slot.free = false;
    slot.lastUsed = ++this.#uses;
    const { sequence } = slot;
    const taken: Omit<TakenSlot, "cachedTokens"> = {
      sequence,
      release: () => {
        slot.free = true;
      },
      discard: async () => {
        try {
          await sequence.clearHistory();
        } finally {
          slot.free = true;
        }
      },
    };
    try {
      // A slot that changes its salt is cleared: salts share no prefix.
      if (slot.salt !== salt) await sequence.clearHistory();
      slot.salt = salt;
      await sequence.adaptStateToTokens(reusable, false);
    } catch (error) {
      await taken.discard();
      throw error;
    }
    return { ...taken, cachedTokens: sequence.nextTokenIndex };
  }
}

/** A sampled token; where requested, with the distribution, likeliest first. */
interface DrawnToken {
  readonly token: Token;
  readonly probabilities?: ReadonlyMap<Token, number>;
}

/**
 * Samples a sequence's continuation. With log probabilities tokens are drawn from the whole vocabulary, because llama.cpp reports
 * probabilities after top-k and top-p; at temperature 0 too.
 */
export async function* drawTokens(
  sequence: LlamaContextSequence,
  tokens: Token[],
  { temperature = 0, topP, seed, topLogprobs }: GenerationRequest,
): AsyncGenerator<DrawnToken, void, undefined> {
  const options = { temperature, ...(seed === undefined ? {} : { seed }), yieldEogToken: true };
  if (topLogprobs !== undefined) {
    const whole = { ...options, topK: 0, topP: 1 };
    yield* sequence.evaluateWithMetadata(tokens, { probabilities: true }, whole);
    return;
  }
  const limited = { ...options, ...(topP === undefined ? {} : { topP }) };
  for await (const token of sequence.evaluate(tokens, limited)) yield { token };
}

/** Collects tokens' log probabilities until they are emitted with their text. */
export class TokenLog {
  #tokens: AnswerToken[] = [];

  /** @param top alternatives per token; undefined: log probabilities are not reported */
  constructor(
    private readonly model: Pick<LlamaModel, "detokenize">,
    private readonly top: number | undefined,
  ) {}

  get isEmpty(): boolean {
    return this.#tokens.length === 0;
  }

  push(token: Token, probabilities: ReadonlyMap<Token, number> | undefined): void {
    if (this.top === undefined || probabilities === undefined) return;
    const top: LikelyToken[] = [];
    for (const [likely, probability] of probabilities) {
      if (top.length >= this.top) break;
      top.push(this.#likely(likely, probability));
    }
    this.#tokens.push({ ...this.#likely(token, probabilities.get(token) ?? 0), top });
  }

  /** Tokens since the last call; empty where log probabilities are not reported. */
  take(): { readonly tokens?: readonly AnswerToken[] } {
    if (this.top === undefined) return {};
    const tokens = this.#tokens;
    this.#tokens = [];
    return { tokens };
  }

  #likely(token: Token, probability: number): LikelyToken {
    // Special tokens by name, which text does not have.
    return { text: this.model.detokenize([token], true), logprob: Math.log(probability) };
  }
}
