import { setTimeout as setTimeoutAsync } from "node:timers/promises";
import type { z } from "zod";
import type { AgentId, ConversationId, RequestId, RetrievedMemory, UserId } from "../../core/index.js";
import {
  type MemorySource,
  MemorySourceError,
  type MessageAddition,
  type NewMemory,
} from "../../memory/memory-source.js";
import type { Store } from "../../store/store.js";
import { DeletedMeanwhileError, InvalidRequestError } from "../base/errors.js";
import { type addOptions, mem0Items } from "../fields/companion-options.js";
import type { TenantQueues } from "../scopes/user-queues.js";
import { BATCH, type MemoryWriter, queueOf, type Written } from "./memory-writer.js";

/** Milliseconds for which an addition holds its user's queue. The next search finds what was added by then. */
const HELD_MS = 500;

/** An exchange that the source is given with others of its conversation. */
export interface WaitingExchange {
  readonly addition: MessageAddition;
  /** Null: with others of its run, or of its user and agent. */
  readonly conversationId: ConversationId | null;
  /** The request that it answers: not kept if that is no longer stored, because the answer may quote a memory that was forgotten since. */
  readonly requestId: RequestId | null;
  readonly isAtOnce: boolean;
}

/** Adds memories to the source, one addition of a user at a time. After {@link HELD_MS} the user's prompts do not wait for a slow source. */
export class MemoryAdditions {
  /** @param writer null without a source */
  constructor(
    private readonly source: MemorySource | null,
    private readonly writer: MemoryWriter | null,
    private readonly store: Pick<Store, "begin" | "userNumber" | "writes">,
    private readonly jobs: TenantQueues,
    private readonly now: () => number,
    private readonly heldMs = HELD_MS,
  ) {}

  /** Adds what a caller of the API gives. Gives it in Mem0's form. Rejects with `InvalidRequestError`, and as {@link add} does. */
  async addGiven(
    { userId, agentId = null, memories, messages, metadata, wait, ...others }: z.output<typeof addOptions>,
    signal?: AbortSignal,
  ): Promise<{ readonly results: readonly { id: string; memory: string }[]; readonly waiting: number }> {
    const { conversationId = null, runId, infer } = others;
    if ((memories === undefined) === (messages === undefined)) throw invalid("give either memories or messages");
    if (messages === undefined) {
      if ([conversationId, runId, infer, wait].some((given) => given != null))
        throw invalid("go without conversation_id, run_id, infer and wait, which belong to messages");
      const texts = memories?.map((text) => ({ text, ...(metadata && { metadata }) })) ?? [];
      return { results: mem0Items(await this.add(userId, agentId, texts, signal)), waiting: 0 };
    }
    const addition = {
      messages,
      ...(runId != null && { runId }),
      ...(infer != null && { infer }),
      ...(metadata && { metadata }),
    };
    const isAtOnce = wait === true;
    const exchange = { addition, conversationId, requestId: null, isAtOnce };
    const kept = await this.keep(userId, agentId, exchange, isAtOnce || !this.#extracts);
    if (kept === null) throw new DeletedMeanwhileError();
    return { results: mem0Items(kept.added), waiting: kept.waiting };
  }

  /** Adds texts. Rejects with {@link MemorySourceError}, `BusyUserError` or {@link DeletedMeanwhileError}: then nothing stays added. */
  async add(
    userId: UserId,
    agentId: AgentId | null,
    memories: readonly NewMemory[],
    signal?: AbortSignal,
  ): Promise<readonly RetrievedMemory[]> {
    const { source, jobs, store } = this;
    const scope = jobs.scopeOf(userId, agentId);
    if (source === null) throw noSource();
    jobs.rejectIfBusy(userId);
    const { adding } = await jobs.run(userId, async () => {
      const user = await store.begin(scope, this.now());
      const isDeleted = async () => (await store.userNumber(scope)) !== user;
      const adding = jobs.runAside(userId, () =>
        jobs.untilClosing(signal, async (stop) => {
          if (await isDeleted()) throw new DeletedMeanwhileError();
          const added = await source.add(scope, memories, stop);
          if (!(await isDeleted())) return added;
          await Promise.all(added.map(({ id }) => source.delete(scope, id, jobs.closing)));
          throw new DeletedMeanwhileError();
        }),
      );
      await this.#held(adding);
      return { adding };
    });
    return await adding;
  }

  /**
   * Stores an exchange, and adds it at once or with others. Null: its user or its request was deleted meanwhile. Rejects as {@link add} does, but
   * not if the source fails: then it waits.
   *
   * @param isAwaited whether to resolve after it was tried
   */
  async keep(
    userId: UserId,
    agentId: AgentId | null,
    { addition, conversationId, requestId, isAtOnce }: WaitingExchange,
    isAwaited = false,
  ): Promise<Written> {
    const { source, writer, jobs, store } = this;
    const scope = jobs.scopeOf(userId, agentId);
    if (source === null || writer === null) throw noSource();
    // Throws for names that the source could not be given later.
    source.sourceUserId?.(scope);
    if (requestId === null) jobs.rejectIfBusy(userId);
    const exchanges = Math.max(1, addition.messages.filter(({ role }) => role === "user").length);
    const isUrgent = isAtOnce || !this.#extracts || addition.infer === false;
    const kept = await jobs.run(userId, async () => {
      const at = this.now();
      if (requestId === null) await store.begin(scope, at);
      const queue = queueOf(conversationId, addition.runId ?? null);
      const waiting = await store.writes.keep(scope, { queue, addition, exchanges, requestId, at });
      if (waiting === null) return null;
      writer.waits(waiting, addition.messages);
      if (!isUrgent && waiting.waiting < BATCH) return { waiting, writing: null };
      const writing = writer.write(waiting, isUrgent ? 1 : BATCH);
      if (isUrgent) await this.#held(writing);
      return { waiting, writing };
    });
    if (kept === null) return null;
    const { waiting, writing } = kept;
    if (writing === null || !isAwaited) return { added: [], waiting: waiting.waiting };
    return (await writing) ?? { added: [], waiting: waiting.waiting };
  }

  /** Without a model that extracts, the source stores each exchange at once. */
  get #extracts(): boolean {
    return this.source?.addMessages !== undefined;
  }

  async #held(adding: Promise<unknown>): Promise<void> {
    const settled = adding.then(
      () => undefined,
      () => undefined,
    );
    await Promise.race([settled, setTimeoutAsync(this.heldMs, undefined, { ref: false })]);
  }
}

function invalid(message: string): InvalidRequestError {
  return new InvalidRequestError([{ field: "memories", message }]);
}

function noSource(): MemorySourceError {
  return new MemorySourceError("none", { kind: "unsupported", operation: "add memories" });
}
