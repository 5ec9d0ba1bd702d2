import {
  type AgentId,
  type ChatMessage,
  type ConversationId,
  digestOf,
  type RequestId,
  type UserId,
} from "../../core/index.js";
import type { Store } from "../../store/api/store.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";

/** A stored response, with what was said up to it. */
export interface FoundResponse {
  readonly conversationId: ConversationId | null;
  /** The messages of its prompt, without what memprefix injected. */
  readonly history: readonly ChatMessage[];
}

/** Most responses of one tenant, of all its users. */
const MOST_RESPONSES = 10_000;

/** Which prompt led to a response of the engine's, by its id: a later request may name that in place of its history. */
export class StoredResponses {
  constructor(
    private readonly store: Store,
    private readonly jobs: TenantQueues,
  ) {}

  /** Null: not known. */
  async find(userId: UserId, agentId: AgentId | null, id: string): Promise<FoundResponse | null> {
    const scope = this.jobs.scopeOf(userId, agentId);
    const found = await this.store.findResponse(scope, digestOf(id));
    const prompt = found && (await this.store.findRequest(scope, found.requestId));
    if (prompt == null) return null;
    const said = prompt.turns.flatMap(({ given }) => given);
    return { conversationId: prompt.turns.at(-1)?.turn.conversationId ?? null, history: [...prompt.head, ...said] };
  }

  /** Stores a response in the user's queue, before the user's next request is composed. */
  async keep(userId: UserId, agentId: AgentId | null, id: string, requestId: RequestId): Promise<void> {
    const scope = this.jobs.scopeOf(userId, agentId);
    const stored = { requestId, isHeld: true, sent: { count: 0, digest: digestOf("") }, output: [] };
    await this.jobs.run(userId, () =>
      retryWhileLocked(async () => {
        const deletions = await this.store.deletionsOf(scope.tenant, userId);
        await this.store.keepResponse(scope, deletions, digestOf(id), stored, null, MOST_RESPONSES);
      }),
    );
  }
}
