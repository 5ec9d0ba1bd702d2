import { type AgentId, type ChatMessage, type ConversationId, digestOf, type UserId } from "../../core/index.js";
import type { Store, StoredResponse } from "../../store/api/store.js";
import { retryWhileLocked, type TenantQueues } from "../scopes/user-queues.js";
import type { DeletionWatch } from "../scopes/working-scopes.js";

/** A stored response, with what was said up to it. */
export interface FoundResponse extends Pick<StoredResponse, "isHeld" | "sent"> {
  /** Null: its prompt was a single one. */
  readonly conversationId: ConversationId | null;
  /** The messages of its prompt, without what memprefix injected, and of its answer. */
  readonly history: readonly ChatMessage[];
}

/** A response to store. */
export interface NewResponse extends StoredResponse {
  readonly id: string;
  /** The id of the response that it continues; null: none. */
  readonly continued: string | null;
}

/** Most responses of one tenant, of all its users. */
const MOST_RESPONSES = 10_000;
/** Most characters of an answer, as JSON; a longer one is not stored. */
const MAX_OUTPUT = 256 * 1024;

/** Responses of a tenant's users that outlive the process. An id itself is not stored: it opens the response at the engine. */
export class StoredResponses {
  constructor(
    private readonly store: Store,
    private readonly jobs: TenantQueues,
  ) {}

  async find(userId: UserId, agentId: AgentId | null, id: string): Promise<FoundResponse | null> {
    const scope = this.jobs.scopeOf(userId, agentId);
    const found = await this.store.findResponse(scope, digestOf(id));
    const prompt = found && (await this.store.findRequest(scope, found.requestId));
    if (found === null || prompt === null) return null;
    const { isHeld, sent, output } = found;
    const said = prompt.turns.flatMap(({ given }) => given);
    const conversationId = prompt.turns.at(-1)?.turn.conversationId ?? null;
    return { isHeld, sent, conversationId, history: [...prompt.head, ...said, ...output] };
  }

  /** Stores a response in the user's queue, before the user's next request is composed. */
  async keep(userId: UserId, agentId: AgentId | null, response: NewResponse, watch: DeletionWatch): Promise<void> {
    if (JSON.stringify(response.output).length > MAX_OUTPUT) return;
    const scope = this.jobs.scopeOf(userId, agentId);
    const { id, continued, ...stored } = response;
    const before = continued === null ? null : digestOf(continued);
    const keep = () => this.store.keepResponse(scope, watch.since, digestOf(id), stored, before, MOST_RESPONSES);
    await this.jobs.run(userId, () => retryWhileLocked(keep));
  }
}
