/*
 * embedded/: llama.cpp in this process, through the optional package `node-llama-cpp`.
 * In: a GGUF file; chats with a cache salt and a caller (`GenerationRequest`).
 * Out: text and measured usage, cached tokens and TTFT included: as events (here), as OpenAI's API (`embedded-openai.ts`), or as an
 * `Upstream` without a socket (`embeddedUpstream`).
 * A request passes: queue (round-robin over callers), slot (best shared prefix), prefill, drawn tokens, stop texts.
 */

import { basename } from "node:path";
import type { LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp";
import type { TokenCounter } from "../../core/index.js";
import { messageOf } from "../../core/text/thrown.js";
import { FairQueue } from "./fair-queue.js";
import {
  AnswerText,
  type ChatModel,
  ContextLengthError,
  EmbeddedEngineError,
  type GenerationEvent,
  type GenerationRequest,
  StopText,
} from "./generation.js";
import {
  type ChatTokens,
  chatTokenizer,
  drawTokens,
  LlamaSlots,
  type LoadedLlama,
  loadLlama,
  modelTokenCounter,
  notGguf,
  type TakenSlot,
  TokenLog,
} from "./llama.js";

/** How the embedded engine runs. */
export interface EmbeddedEngineOptions {
  /** A GGUF file. */
  readonly modelPath: string;
  /** Requests that run at once; each slot keeps its last prompt for later ones to share its prefix. */
  readonly slots?: number | undefined;
  /** Tokens of a prompt and its answer. Default: the model's training context, at most 8,192. Memory is reserved per slot. */
  readonly contextTokens?: number | undefined;
  /** Threads; default: the machine's cores. */
  readonly threads?: number | undefined;
  /** Requests that may wait: of all callers, and of one. */
  readonly waiting?: number | undefined;
  readonly waitingPerCaller?: number | undefined;
  /** Milliseconds from any point in the past. */
  readonly clock?: (() => number) | undefined;
}

/** llama.cpp in this process. */
export interface EmbeddedEngine extends ChatModel {
  readonly slots: number;
  /** Requests that wait for a slot. */
  readonly waiting: number;
  /** Counts texts and messages as the model reads them. Not to be called once it is closed. */
  readonly countTokens: TokenCounter;
  /** Aborts running requests, then frees the memory; later requests are rejected. */
  close(): Promise<void>;
}

const SLOTS = 4;
const CONTEXT_TOKENS = 8_192;
const WAITING = 256;
const WAITING_PER_CALLER = 64;

/**
 * Loads a model. Throws {@link EmbeddedEngineError} where `node-llama-cpp` is not installed or does not run here, where it cannot read the
 * file, or where the context exceeds the model's or the memory.
 */
export async function openEmbeddedEngine(options: EmbeddedEngineOptions): Promise<EmbeddedEngine> {
  const why = await notGguf(options.modelPath);
  if (why !== null) throw unreadable(options.modelPath, why);
  const loaded = await loadLlama();
  try {
    return await openModel(loaded, options);
  } catch (error) {
    await loaded.llama.dispose();
    throw error;
  }
}

async function openModel(loaded: LoadedLlama, options: EmbeddedEngineOptions): Promise<EmbeddedEngine> {
  const { module, llama, complaint } = loaded;
  const { modelPath, slots = SLOTS, threads = llama.cpuMathCores, clock = () => performance.now() } = options;
  const model = await llama.loadModel({ modelPath }).catch(async (error: unknown) => {
    throw unreadable(modelPath, (await complaint()) || messageOf(error), error);
  });
  const { contextTokens = Math.min(model.trainContextSize, CONTEXT_TOKENS) } = options;
  if (contextTokens > model.trainContextSize) {
    const most = `this model supports at most ${model.trainContextSize}`;
    throw new EmbeddedEngineError("context_too_large", `a context of ${contextTokens} tokens is requested, ${most}`);
  }
  const context = await model
    .createContext({
      sequences: slots,
      contextSize: contextTokens,
      // With it, warm and cold answers may differ: a cache hit must not change the answer.
      flashAttention: false,
      threads: { ideal: threads, min: threads },
    })
    .catch((error: unknown) => {
      const size = `${slots} slots of ${contextTokens} tokens`;
      throw new EmbeddedEngineError("context_too_large", `not enough memory for ${size}: ${messageOf(error)}`, {
        cause: error,
      });
    });
  const { waiting = WAITING, waitingPerCaller = WAITING_PER_CALLER } = options;
  const tokensOf = chatTokenizer(module, model);
  const queue = new FairQueue({ running: slots, waiting, waitingPerCaller });
  const free = new LlamaSlots(Array.from({ length: slots }, () => context.getSequence()));
  const writer = new LlamaWriter(model, { contextTokens, batchTokens: context.batchSize, clock });
  /** Running requests: how to abort each, and when it has ended. */
  const underWay = new Map<AbortController, Promise<void>>();
  let closed: Promise<void> | undefined;
  return {
    model: basename(modelPath),
    contextTokens,
    slots,
    countTokens: modelTokenCounter(model, tokensOf),
    get waiting() {
      return queue.length;
    },
    async *generate(request) {
      const { caller = request.cacheSalt ?? "", cacheSalt } = request;
      if (closed !== undefined) throw isClosing();
      request.signal?.throwIfAborted();
      const startedAt = clock();
      const chat = tokensOf(request.messages);
      // Before it waits: no slot is large enough.
      if (chat.tokens.length >= contextTokens) throw new ContextLengthError(chat.tokens.length, contextTokens);
      const work = begun(underWay, request.signal);
      let end: GenerationEvent;
      try {
        const leave = await queue.enter(caller, work.signal);
        const queueMs = clock() - startedAt;
        try {
          const slot = await free.take(chat.tokens, cacheSalt);
          let trusted = true;
          try {
            end = yield* writer.answer(slot, chat, request, work.signal, { startedAt, queueMs });
          } catch (error) {
            // An abort stops between two batches: the cache is valid up to there.
            trusted = work.signal.aborted;
            throw error;
          } finally {
            if (trusted) slot.release();
            else await slot.discard();
          }
        } finally {
          leave();
        }
      } finally {
        work.end();
      }
      // Only now: a reader may stop at the end event, and the slot would not be released.
      yield end;
    },
    close() {
      closed ??= (async () => {
        for (const controller of underWay.keys()) controller.abort(isClosing());
        await Promise.all(underWay.values());
        await llama.dispose();
      })();
      return closed;
    },
  };
}

function isClosing(): EmbeddedEngineError {
  return new EmbeddedEngineError("engine_closed", "The engine is shutting down.");
}

function unreadable(path: string, why: string, cause?: unknown): EmbeddedEngineError {
  return new EmbeddedEngineError("model_unreadable", `${path} cannot be loaded as a model: ${why}`, { cause });
}

/** A request that closing the engine aborts and waits for. (`AbortSignal.any` leaks in Node 20 with a signal as old as the process.) */
function begun(
  underWay: Map<AbortController, Promise<void>>,
  signal: AbortSignal | undefined,
): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  underWay.set(controller, ended);
  return {
    signal: controller.signal,
    end: () => {
      signal?.removeEventListener("abort", abort);
      underWay.delete(controller);
      end();
    },
  };
}

/** Answers from a slot. */
class LlamaWriter {
  constructor(
    private readonly model: LlamaModel,
    private readonly limits: {
      readonly contextTokens: number;
      /** llama.cpp's batch size, in tokens. */
      readonly batchTokens: number;
      readonly clock: () => number;
    },
  ) {}

  async *answer(
    { sequence, cachedTokens }: TakenSlot,
    { tokens, stopTokens, stopTexts }: ChatTokens,
    request: GenerationRequest,
    signal: AbortSignal,
    { startedAt, queueMs }: { readonly startedAt: number; readonly queueMs: number },
  ): AsyncGenerator<GenerationEvent, GenerationEvent, undefined> {
    const { model } = this;
    const { clock, contextTokens } = this.limits;
    const most = Math.min(request.maxTokens ?? Number.POSITIVE_INFINITY, contextTokens - tokens.length);
    const text = new AnswerText<Token>((these, before) => model.detokenize(these, false, before));
    const stop = new StopText([...stopTexts, ...(request.stop ?? [])]);
    let ttftMs: number | null = null;
    let completionTokens = 0;
    let ending: "length" | "token" | "text" = "length";
    const log = new TokenLog(model, request.topLogprobs);
    const uncached = await this.#prefill(sequence, tokens.slice(cachedTokens), signal);
    for await (const { token, probabilities } of drawTokens(sequence, uncached, request)) {
      signal.throwIfAborted();
      ttftMs ??= clock() - startedAt;
      if (model.isEogToken(token) || stopTokens.has(token)) {
        ending = "token";
        break;
      }
      completionTokens++;
      log.push(token, probabilities);
      const handed = stop.push(text.push(token));
      if (handed.text !== "") yield { kind: "text", text: handed.text, ...log.take() };
      if (handed.stopped) {
        ending = "text";
        break;
      }
      if (completionTokens >= most) break;
    }
    if (ending !== "text") {
      const last = stop.push(text.rest());
      if (last.stopped) ending = "text";
      const rest = last.stopped ? last.text : last.text + stop.rest();
      if (rest !== "") yield { kind: "text", text: rest, ...log.take() };
    }
    if (!log.isEmpty) yield { kind: "text", text: "", ...log.take() };
    const totalMs = clock() - startedAt;
    const usage = { promptTokens: tokens.length, cachedTokens, completionTokens, queueMs, ttftMs, totalMs };
    return { kind: "end", finishReason: ending === "length" ? "length" : "stop", usage };
  }

  /** Computes all of a prompt but its last batch, which it returns. Batch by batch, so that it can be aborted in between. */
  async #prefill(sequence: LlamaContextSequence, tokens: readonly Token[], signal: AbortSignal): Promise<Token[]> {
    const { batchTokens } = this.limits;
    let at = 0;
    for (; tokens.length - at > batchTokens; at += batchTokens) {
      await sequence.evaluateWithoutGeneratingNewTokens(tokens.slice(at, at + batchTokens));
      signal.throwIfAborted();
    }
    return tokens.slice(at);
  }
}
