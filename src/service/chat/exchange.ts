import type { AnswerReader } from "../../apis/api/answer.js";
import type { EngineUsage } from "../../apis/api/usage.js";
import { conversationOf } from "../../apis/responses/history.js";
import { type ChatMessage, exchangeText, lastAsked, memoryTextProblem, withoutSections } from "../../core/index.js";
import { isRecord, type JsonObject, parsedJson } from "../../core/text/json.js";
import { bufferBody, eventsOf } from "../../engines/upstream/answer-body.js";
import type { UpstreamAnswer } from "../../engines/upstream/upstream.js";
import type { MessageAddition } from "../../memory/memory-source.js";
import type { ComposeAnswer } from "../base/call-types.js";
import { NotFoundError } from "../base/errors.js";
import type { InferenceSpan } from "../base/spans.js";
import { observationOf } from "../learning/engine-reports.js";
import type { ChatComposer, ChatParts, ChatRequest } from "./chat-request.js";
import { isStoredBy } from "./continued-responses.js";
import { modelName, RefusedModels } from "./engine-limits.js";
import type { WriteCall } from "./write-calls.js";

/** Statuses with which engines refuse a field of a request. */
const REFUSED = new Set([400, 422]);
const MAX_REFUSAL_BYTES = 16 * 1024 * 1024;

/** Requests the usage of a stream if the client did not. If the engine refuses, sends it again without; a success then counts as a refusal. */
export class StreamUsage {
  readonly #refused: RefusedModels;

  constructor(clock: () => number) {
    this.#refused = new RefusedModels(clock);
  }

  /** @returns the answer, and whether memprefix added the usage to the request */
  async send(
    tenant: object,
    own: JsonObject,
    body: JsonObject,
    send: (body: JsonObject) => Promise<UpstreamAnswer>,
  ): Promise<{ readonly answer: UpstreamAnswer; readonly isUsageAdded: boolean }> {
    const model = modelName(own["model"]);
    const isUsageAdded = own["stream"] === true && own["stream_options"] == null && !this.#refused.has(tenant, model);
    if (!isUsageAdded) return { answer: await send(body), isUsageAdded };
    const answer = await send({ ...body, stream_options: { include_usage: true } });
    if (!REFUSED.has(answer.status)) return { answer, isUsageAdded };
    const held = await bufferBody(answer.body, MAX_REFUSAL_BYTES);
    if (held.whole?.includes("stream_options") !== true)
      return { answer: { ...answer, body: held.body }, isUsageAdded };
    const without = await send(body);
    if (without.status < 300) this.#refused.add(tenant, model);
    return { answer: without, isUsageAdded: false };
  }
}

/** Bytes of an unstreamed answer that are buffered; a longer one is passed on unread. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

interface AnsweredRequest {
  readonly memprefix: ChatComposer;
  readonly request: ChatRequest;
  readonly composed: ComposeAnswer | null;
  /** When it was sent, by the clock. */
  readonly started: number;
  readonly span: InferenceSpan;
  /** Null: none of Mem0's own calls. */
  readonly write: WriteCall | null;
}

/** Passes an engine's answer on, and reads from it: cached tokens, time to first token, the text. */
export class Exchange {
  readonly #observed: AnswerReader;

  constructor(
    private readonly parts: Pick<ChatParts, "readUsage" | "writeBack" | "onFault" | "clock">,
    private readonly of: AnsweredRequest,
  ) {
    this.#observed = of.request.api.answerReader();
  }

  async whole(answer: UpstreamAnswer): Promise<UpstreamAnswer & { usage: EngineUsage | null }> {
    const { whole, body } = await bufferBody(answer.body, MAX_HELD_BYTES);
    this.#observed.take(whole === null ? undefined : parsedJson(whole), this.parts.clock());
    return { ...answer, body, usage: this.#learn() };
  }

  /** Passes on an event stream, without the usage event if memprefix requested it. What was learned is queued before the client sees the end. */
  async *stream({ body }: UpstreamAnswer, isUsageAdded: boolean): AsyncGenerator<Uint8Array, void, undefined> {
    let isLearned = false;
    try {
      for await (const { bytes, data, isLast } of eventsOf(body)) {
        const isAwaited = this.#observed.firstTokenAt === null;
        this.#observed.take(data, this.parts.clock());
        if (isAwaited) this.#began();
        // Clients stop reading here, and may send their next request at once.
        if ((isLast || this.#observed.isOver) && !isLearned) {
          isLearned = true;
          this.#learn();
        }
        // The client did not request this one.
        if (!(isUsageAdded && isUsageOnly(data))) yield bytes;
      }
    } catch (error) {
      this.of.span.fail(error instanceof Error ? error.name : "unknown");
      throw error;
    } finally {
      if (!isLearned) this.#learn();
    }
  }

  #began(): void {
    const { firstTokenAt } = this.#observed;
    const { memprefix, request, composed, started } = this.of;
    if (firstTokenAt === null || composed === null) return;
    memprefix.reports.began(request.userId, request.agentId, composed, { sentAt: started, firstAt: firstTokenAt });
  }

  /** Applies an answer to the user's state before the client has its end, so before the client's next request. Never fails the answer. */
  #learn(): EngineUsage | null {
    const { reported, firstTokenAt } = this.#observed;
    const { request, span, started } = this.of;
    try {
      const { readUsage = this.parts.readUsage } = request.api;
      const usage = reported === null ? null : readUsage(reported);
      span.end({ answer: reported, usage, firstTokenMs: firstTokenAt === null ? null : firstTokenAt - started });
      void this.of.write?.ended(usage).catch(this.parts.onFault);
      this.#report(usage);
      this.#remember();
      this.#keepContinuable();
      return usage;
    } catch (error) {
      this.parts.onFault(error);
      return null;
    }
  }

  #report(usage: EngineUsage | null): void {
    const { memprefix, request, composed, started } = this.of;
    const { reported, firstTokenAt } = this.#observed;
    const observation = observationOf({
      promptTokens: usage?.promptTokens,
      cachedTokens: usage?.cachedTokens,
      ttftMs: firstTokenAt === null ? null : firstTokenAt - started,
    });
    if (composed === null) return;
    const { userId, agentId, compose } = request;
    if (firstTokenAt === null && reported === null) memprefix.reports.interrupted(userId, agentId, composed.requestId);
    if (request.added !== undefined) {
      // The engine's prompt has more than the part known here, so no hit is expected from it or corrected by it.
      memprefix.reports.neverServed(userId, agentId, composed.requestId).catch(this.parts.onFault);
      return;
    }
    if (Object.keys(observation).length === 0) return;
    const served = compose?.destination && { model: compose.destination.model, answered: this.#paceOf(usage) };
    const reporting = memprefix.reports.feedback(userId, agentId, composed.requestId, observation, served ?? undefined);
    reporting.catch((error: unknown) => {
      // The user was forgotten while the engine answered.
      if (!(error instanceof NotFoundError)) this.parts.onFault(error);
    });
  }

  /** Stores the ids by which a later request may continue the answer: its own, and the engine's conversation's. */
  #keepContinuable(): void {
    const { memprefix, request, composed } = this.of;
    const { body, userId, agentId } = request;
    const id = this.#observed.continuableId ?? null;
    if (id === null || composed === null || !isStoredBy(request)) return;
    const response = { id, requestId: composed.requestId, engineConversation: conversationOf(body) };
    memprefix.responses.keep(userId, agentId, response).catch(this.parts.onFault);
  }

  #remember(): void {
    const { memprefix, request, composed } = this.of;
    const { userId, agentId, compose, writeBack } = request;
    const answer = (writeBack ?? this.parts.writeBack) ? this.#observed.text : null;
    if (answer === null || compose === null || composed === null) return;
    const { messages, conversationId } = compose;
    const addition = exchangeIn(messages, answer);
    if (addition === null) return;
    // Without a history, no later prompt says it until it is added.
    const isAtOnce = conversationId === null && messages.every(({ role }) => role !== "assistant");
    const exchange = { addition, conversationId, requestId: composed.requestId, isAtOnce };
    memprefix.additions.keep(userId, agentId, exchange).catch(this.parts.onFault);
  }

  /** Tokens after the first one, and their milliseconds; null if the answer was not streamed or not counted. */
  #paceOf(usage: EngineUsage | null) {
    const { firstTokenAt } = this.#observed;
    if (firstTokenAt === null || !(usage?.completionTokens && usage.completionTokens > 1)) return null;
    return { tokens: usage.completionTokens - 1, ms: this.parts.clock() - firstTokenAt };
  }
}

/** Whether a chunk of a chat completion holds the usage and nothing else. */
function isUsageOnly(given: unknown): boolean {
  if (!isRecord(given) || !isRecord(given["usage"])) return false;
  return Array.isArray(given["choices"]) && given["choices"].length === 0;
}

/** Tags of an injected section. Text that still has one after whole sections were removed is not stored. */
const SECTION_TAGS = /<\/?memories>/;

/** The last question of the client's own messages, and the answer. Null without a question, or if part of an injected section would remain. */
function exchangeIn(given: readonly ChatMessage[], answer: string): MessageAddition | null {
  const question = lastAsked(given);
  const text = exchangeText(question, answer);
  if (question === undefined || text === null) return null;
  if (SECTION_TAGS.test(text) || memoryTextProblem(text) !== null) return null;
  const messages = [
    { role: "user", content: question },
    { role: "assistant", content: withoutSections(answer).trim() },
  ] as const;
  return { messages, metadata: { written_back: true } };
}
