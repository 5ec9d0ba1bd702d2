import type { ChatMessage } from "../../core/index.js";
import type { EngineUsage } from "../../engines/adapters/engine-adapter.js";
import { eventsOf } from "../../engines/upstream/event-stream.js";
import type { UpstreamAnswer } from "../../engines/upstream/upstream.js";
import { NotFoundError } from "../base/errors.js";
import type { ComposeAnswer } from "../compose/compose-answer.js";
import { observationOf } from "../fields/companion-options.js";
import type { DeletionWatch } from "../scopes/deletions-meanwhile.js";
import type { ChatMemory, ChatParts, ChatRequest } from "./chat-request.js";
import { hold } from "./held-body.js";
import { isUsageOnly, type ObservedAnswer } from "./observed-answer.js";
import { exchangeMemory } from "./write-back.js";

/** Bytes of an answer that came as a whole which are held to be read; a longer one goes on unread. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/** A request and its answer, as far as it has come. */
export interface Exchange {
  readonly memstem: ChatMemory;
  readonly request: ChatRequest;
  /** Of what is deleted since it began; null where that is not known. */
  readonly watch: DeletionWatch | null;
  readonly composed: ComposeAnswer | null;
  /** When it was sent, in the clock's milliseconds. */
  readonly started: number;
  readonly observed: ObservedAnswer;
}

/** Hands an engine's answer through, and learns from it: what was cached, how long the first token took, what was said. */
export class ExchangeReading {
  constructor(private readonly parts: Pick<ChatParts, "readUsage" | "writeBack" | "onFault" | "clock">) {}

  /** An answer that comes as a whole, with what is learned from it. */
  async whole(answer: UpstreamAnswer, exchange: Exchange): Promise<UpstreamAnswer & { usage: EngineUsage | null }> {
    const { whole, body } = await hold(answer.body, MAX_HELD_BYTES);
    exchange.observed.take(jsonIn(whole), this.parts.clock());
    return { ...answer, body, usage: this.#learn(exchange) };
  }

  /**
   * An event stream, and what is learned from it, before the client has its end.
   *
   * @param asksUsage the usage was asked for where the client did not: its event is not the client's
   */
  async *stream(
    { body }: UpstreamAnswer,
    exchange: Exchange,
    asksUsage: boolean,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const { observed } = exchange;
    let isLearned = false;
    try {
      for await (const { bytes, data, isLast } of eventsOf(body)) {
        observed.take(data, this.parts.clock());
        // Clients read no further, and may ask again at once.
        if (isLast && !isLearned) {
          isLearned = true;
          this.#learn(exchange);
        }
        // The client did not ask for this one.
        if (!(asksUsage && isUsageOnly(data))) yield bytes;
      }
    } finally {
      if (!isLearned) this.#learn(exchange);
    }
  }

  /**
   * Takes what an answer said to the user's state. It is in the user's queue before the client has the answer's end, so that the client's
   * next request finds it done. Whatever fails here, the answer goes on.
   */
  #learn(exchange: Exchange): EngineUsage | null {
    const { observed } = exchange;
    try {
      const usage = observed.reported === null ? null : this.parts.readUsage(observed.reported);
      this.#keep(exchange, usage);
      return usage;
    } catch (error) {
      this.parts.onFault(error);
      return null;
    }
  }

  #keep({ memstem, request, watch, composed, started, observed }: Exchange, usage: EngineUsage | null): void {
    const { onFault } = this.parts;
    const observation = observationOf({
      promptTokens: usage?.promptTokens,
      cachedTokens: usage?.cachedTokens,
      ttftMs: observed.firstTokenAt === null ? null : observed.firstTokenAt - started,
    });
    if (composed !== null && Object.keys(observation).length > 0) {
      memstem.feedback(request.userId, request.agentId, composed.requestId, observation).catch((error: unknown) => {
        // A user that was forgotten while the engine answered.
        if (!(error instanceof NotFoundError)) onFault(error);
      });
    }
    const answer = (request.writeBack ?? this.parts.writeBack) ? observed.text : null;
    const { messages } = request.compose ?? { messages: [] as readonly ChatMessage[] };
    const memory = answer === null ? null : exchangeMemory(messages, answer);
    if (memory !== null && watch !== null)
      memstem.keepExchange(request.userId, request.agentId, memory, watch).catch(onFault);
  }
}

function jsonIn(text: string | null): unknown {
  try {
    return text === null ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}
