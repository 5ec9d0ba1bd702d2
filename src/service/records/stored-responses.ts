import type { AgentId, ChatMessage, ConversationId, RequestId, UserId } from "../../core/index.js";
import type { Store } from "../../store/store.js";
import type { TenantQueues } from "../scopes/user-queues.js";

export interface FoundResponse {
  /** Null: its prompt was a single one. */
  readonly conversationId: ConversationId | null;
  /** Its prompt's messages, without injected ones. Only the engine has the answer. */
  readonly history: readonly ChatMessage[];
}

export interface NewResponse {
  readonly id: string;
  /** The request that led to it. */
  readonly requestId: RequestId;
  /** The engine's own conversation; null: none. */
  readonly engineConversation: string | null;
}

/** Which prompt led to an engine's response: a later request may name the response in place of its history. */
export class StoredResponses {
  constructor(
    private readonly store: Store,
    private readonly jobs: TenantQueues,
  ) {}

  /** Null: unknown. Reads in the user's queue, after earlier responses were stored. */
  find(userId: UserId, agentId: AgentId | null, id: string): Promise<FoundResponse | null> {
    return this.jobs.run(userId, async () => {
      const scopeId = await this.store.find(this.jobs.scopeOf(userId, agentId));
      const requestId = scopeId && (await this.store.findResponse(scopeId, id));
      const prompt = requestId && (await this.store.findRequest(scopeId, requestId));
      if (!prompt) return null;
      const said = prompt.turns.flatMap(({ given }) => given);
      return { conversationId: prompt.turns.at(-1)?.turn.conversationId ?? null, history: [...prompt.head, ...said] };
    });
  }

  /** Stores a response before the user's next request is composed, unless its request was forgotten meanwhile. */
  async keep(userId: UserId, agentId: AgentId | null, response: NewResponse): Promise<void> {
    const { id, requestId, engineConversation } = response;
    await this.jobs.run(userId, async () => {
      const scopeId = await this.store.find(this.jobs.scopeOf(userId, agentId));
      if (scopeId !== null) await this.store.keepResponse(scopeId, requestId, id, engineConversation);
    });
  }
}
