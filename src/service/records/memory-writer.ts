import {
  type ChatMessage,
  type ConversationId,
  LruMap,
  messageText,
  type RetrievedMemory,
  type Scope,
} from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import {
  type AddedMessage,
  type MemorySource,
  MemorySourceError,
  type MessageAddition,
} from "../../memory/memory-source.js";
import type { Store, StoredWrite, WriteQueue } from "../../store/store.js";
import { asideKey, type UserQueues } from "../scopes/user-queues.js";

/** Exchanges of a conversation that are added together … */
export const BATCH = 2;
/** … or fewer, after so many milliseconds without another one. */
const IDLE_MS = 120_000;
/** Milliseconds between two looks for queues that are due. */
const LOOK_MS = 5_000;
/** Milliseconds for which a queue is held: more than an addition may take. If the process dies, another one waits that long. */
const HELD_MS = 150_000;
/** Most additions at once. */
const AT_ONCE = 8;
/** The wait after a failure, doubled for each further one. */
const FIRST_WAIT_MS = 1_000;
const MOST_WAIT_MS = 60_000;

/** Statuses with which a source refuses these exchanges for good. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 414, 422]);
/** Most conversations whose oldest waiting question is known. */
const MOST_CONVERSATIONS = 10_000;

/** What was added, and how many exchanges of the queue still wait; null: the source fails, or another process writes the queue. */
export type Written = { readonly added: readonly RetrievedMemory[]; readonly waiting: number } | null;

/** Gives the source waiting exchanges in their conversation's order, and removes them once answered. A crash in between repeats an addition. */
export class MemoryWriter {
  #failures = 0;
  #pausedUntil = 0;
  #onFault: (error: unknown) => void = () => {};
  /** The oldest waiting question of each conversation, by which its client's messages show whether they still have it. */
  readonly #oldest = new LruMap<string, { readonly queue: WriteQueue; readonly question: string }>(MOST_CONVERSATIONS);

  constructor(
    private readonly source: MemorySource,
    private readonly store: Pick<Store, "writes">,
    private readonly queues: UserQueues,
    private readonly closing: AbortSignal,
    private readonly now: () => number,
  ) {}

  /** Looks for queues that are due until it is stopped, which then writes all others. `stop` resolves when that is done, or the source fails. */
  start(onFault: (error: unknown) => void): () => Promise<void> {
    this.#onFault = onFault;
    let isStopped = false;
    let timer: NodeJS.Timeout | undefined;
    const look = async () => {
      await this.#writeDue(IDLE_MS, BATCH);
      if (isStopped) return;
      timer = setTimeout(() => {
        looking = look();
      }, LOOK_MS).unref();
    };
    let looking = this.store.writes.release().then(look, onFault);
    return async () => {
      isStopped = true;
      clearTimeout(timer);
      await looking;
      await this.#writeDue(0, 1);
    };
  }

  /** Writes a queue's first exchanges if there are at least `first`, and others while there are at least `further`. Never rejects. */
  write(queue: WriteQueue, first: number, further = first): Promise<Written> {
    // One slot per scope keeps the order, and bounds the calls to the source.
    return this.queues.run(`writes ${queue.scopeId % AT_ONCE}`, async () => {
      try {
        return await this.#write(queue, first, further);
      } catch (error) {
        this.#onFault(error);
        return null;
      }
    });
  }

  waits(queue: WriteQueue, [message]: readonly AddedMessage[]): void {
    const name = nameOf(queue);
    if (message !== undefined && !this.#oldest.has(name)) this.#oldest.set(name, { queue, question: message.content });
  }

  /** A client has sent these messages of a conversation. Writes what they no longer have, since nothing else of the prompt says it. */
  seen(scope: Scope, id: ConversationId, messages: readonly ChatMessage[]): void {
    const oldest = this.#oldest.peek(nameOf({ scope, queue: queueOf(id, null) }));
    if (oldest === undefined || messages.some((message) => messageText(message).includes(oldest.question))) return;
    void this.write(oldest.queue, 1);
  }

  async #writeDue(idleMs: number, least: number): Promise<void> {
    try {
      for (let isLeft = true; isLeft && !this.#isPaused; ) {
        const due = await this.store.writes.due(this.now(), BATCH, this.now() - idleMs);
        const written = await Promise.all(due.map((queue) => this.write(queue, 1, least)));
        isLeft = due.length > 0 && !written.includes(null);
      }
    } catch (error) {
      this.#onFault(error);
    }
  }

  get #isPaused(): boolean {
    return this.#pausedUntil > this.now() || this.closing.aborted;
  }

  async #write(queue: WriteQueue, first: number, further: number): Promise<Written> {
    const { writes } = this.store;
    const added: RetrievedMemory[] = [];
    for (let least = first; ; least = further) {
      const waiting = await writes.first(queue, BATCH);
      this.#oldest.delete(nameOf(queue));
      if (waiting[0] !== undefined) this.waits(queue, additionOf(waiting[0]).messages);
      if (exchangesIn(waiting) < least) return { added, waiting: exchangesIn(waiting) };
      if (this.#isPaused || !(await writes.claim(queue, this.now(), this.now() + HELD_MS))) return null;
      try {
        append(added, await this.queues.run(asideKey(queue.scope), () => this.#writeFirst(queue)));
        this.#failures = 0;
      } catch (error) {
        await writes.unhold(queue);
        if (!(error instanceof MemorySourceError)) throw error;
        if (!this.#isPaused)
          this.#pausedUntil = this.now() + Math.min(MOST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.#failures++);
        return null;
      }
    }
  }

  /** Adds the first exchanges of a claimed queue and removes them; what the source refuses, one by one. Rejects if the source fails. */
  async #writeFirst(queue: WriteQueue): Promise<readonly RetrievedMemory[]> {
    const stored = await this.store.writes.first(queue, BATCH);
    const batch = batchOf(stored, this.source.addMessages !== undefined);
    try {
      return await this.#addBatch(queue, batch);
    } catch (error) {
      if (!isRefusal(error) || batch.length <= 1) throw error;
      return await this.#addBatch(queue, batch.slice(0, 1));
    }
  }

  async #addBatch(queue: WriteQueue, batch: readonly StoredWrite[]): Promise<readonly RetrievedMemory[]> {
    const { writes } = this.store;
    const last = batch.at(-1);
    if (last === undefined) return [];
    const added = await this.#add(queue.scope, batch.map(additionOf)).catch((error: unknown) => {
      if (!isRefusal(error) || batch.length > 1) throw error;
      // It would be refused every time.
      return [];
    });
    const stored = new Set((await writes.first(queue, batch.length)).map(({ id }) => id));
    if (batch.every(({ id }) => stored.has(id))) {
      await writes.remove(queue, last.id);
      return added;
    }
    // The user or a memory was deleted meanwhile. What is still stored is added again, without the rest.
    if (batch[0] !== undefined && stored.has(batch[0].id)) await writes.unhold(queue);
    await Promise.all(added.map(({ id }) => this.source.delete(queue.scope, id, this.closing)));
    return [];
  }

  #add(scope: Scope, additions: readonly MessageAddition[]): Promise<readonly RetrievedMemory[]> {
    const messages = additions.flatMap((one) => one.messages);
    const options = { ...additions[0], messages };
    if (this.source.addMessages !== undefined) return this.source.addMessages(scope, options, this.closing);
    return this.source.add(scope, [{ text: textOf(messages), metadata: options.metadata ?? {} }], this.closing);
  }
}

/** The queue of a conversation; without one, of a run, or of all other exchanges of a user and agent. */
export function queueOf(conversationId: ConversationId | null, runId: string | null): string {
  if (conversationId !== null) return `conversation ${conversationId}`;
  return runId === null ? "" : `run ${runId}`;
}

function nameOf({ scope, queue }: Pick<WriteQueue, "scope" | "queue">): string {
  return JSON.stringify([scope.tenant, scope.userId, scope.agentId, queue]);
}

function isRefusal(error: unknown): boolean {
  if (!(error instanceof MemorySourceError)) return false;
  const { failure } = error;
  return failure.kind === "unsupported" || (failure.kind === "refused" && REFUSED.has(failure.status));
}

function additionOf({ addition }: StoredWrite): MessageAddition {
  return addition as MessageAddition;
}

/** Messages as one memory, for a source without a model. */
function textOf(messages: readonly AddedMessage[]): string {
  return messages.map(({ role, content }) => `${role === "user" ? "User" : "Assistant"}: ${content}`).join("\n");
}

/** The first exchanges that can be added together: of the same options, which Mem0 takes once for all messages. */
function batchOf(stored: readonly StoredWrite[], hasModel: boolean): readonly StoredWrite[] {
  const optionsOf = (write: StoredWrite) => JSON.stringify({ ...additionOf(write), messages: [] });
  const [first] = stored;
  if (first === undefined) return [];
  // Without extraction, Mem0 compares nothing with what it has.
  if (!hasModel || additionOf(first).infer === false) return [first];
  const others = stored.findIndex(
    (write, at) => at > 0 && (optionsOf(write) !== optionsOf(first) || exchangesIn(stored.slice(0, at + 1)) > BATCH),
  );
  return others < 0 ? stored : stored.slice(0, others);
}

function exchangesIn(stored: readonly StoredWrite[]): number {
  return stored.reduce((sum, { exchanges }) => sum + exchanges, 0);
}
