import type { AgentId, ChatMessage, ConversationId, RequestId, UserId } from "../../core/index.js";
import type { Store } from "../../store/api/store.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import type { DeletionWatch } from "../scopes/working-scopes.js";

/** A stored response, with what was said up to it. */
export interface FoundResponse {
  /** Null: its prompt was a single one. */
  readonly conversationId: ConversationId | null;
  /** The messages of its prompt, without what memprefix injected. The answer is the engine's alone. */
  readonly history: readonly ChatMessage[];
}

/** A response of the engine's. */
export interface NewResponse {
  readonly id: string;
  /** The request that led to it. */
  readonly requestId: RequestId;
  /** The id of what it continues; null: nothing. */
  readonly continued: string | null;
}

/** Most responses of one tenant, of all its users. */
const MOST_RESPONSES = 10_000;

/** Which prompt led to a response of the engine's, by its id: a later request may name that in place of its history. */
export class StoredResponses {
  constructor(
    private readonly store: Store,
    private readonly jobs: TenantQueues,
  ) {}

  /** Null: not known. Reads in the user's queue, after what was kept before. */
  find(userId: UserId, agentId: AgentId | null, id: string): Promise<FoundResponse | null> {
    const scope = this.jobs.scopeOf(userId, agentId);
    return this.jobs.run(userId, async () => {
      const requestId = await this.store.findResponse(scope, id);
      const prompt = requestId && (await this.store.findRequest(scope, requestId));
      if (!prompt) return null;
      const said = prompt.turns.flatMap(({ given }) => given);
      return { conversationId: prompt.turns.at(-1)?.turn.conversationId ?? null, history: [...prompt.head, ...said] };
    });
  }

  /**
   * Stores a response in the user's queue, before the user's next request is composed.
   *
   * @param watch since before its prompt was composed: where a memory was forgotten meanwhile, the response may hold it, and is not stored
   */
  async keep(userId: UserId, agentId: AgentId | null, response: NewResponse, watch: DeletionWatch): Promise<void> {
    const scope = this.jobs.scopeOf(userId, agentId);
    const { id, requestId, continued } = response;
    const keep = () => this.store.keepResponse(scope, watch.since, id, requestId, continued, MOST_RESPONSES);
    await this.jobs.run(userId, () => retryWhileLocked(keep));
  }
}
