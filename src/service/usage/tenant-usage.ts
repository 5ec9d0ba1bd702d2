import type { AgentId, ConversationId, RequestId, UserId } from "../../core/index.js";
import type {
  ConversationReuse,
  KeptNote,
  KeptUsage,
  ReuseOrder,
  UsageFilter,
  UsageLog,
  UsagePage,
  UsageView,
  UserReuse,
  WindowMisses,
  WindowSums,
} from "../../store/api/usage-log.js";
import { NotFoundError } from "../base/errors.js";
import type { AlertState, AlertWatch } from "./usage-alerts.js";
import type { UsageEvents, UsageListener } from "./usage-events.js";
import type { UsageRecorder } from "./usage-recorder.js";

/** A conversation with its newest prompts. */
export interface ConversationTurns {
  readonly total: ConversationReuse;
  readonly turns: UsagePage;
}

/** What a view shows: all of the tenant's, or a part. */
export type ViewOptions = Omit<UsageView, "tenant" | "now">;
/** Which prompts a list has. */
export type FilterOptions = Omit<UsageFilter, "tenant">;

/** What records all tenants' usage. */
interface TenantUsageParts {
  readonly log: UsageLog;
  readonly recorder: UsageRecorder;
  readonly events: UsageEvents;
  readonly alerts: AlertWatch | null;
}

/** One tenant's usage: the only way from a route to it. Everything recorded before a call is in its answer. */
export class TenantUsage {
  private readonly log: UsageLog;
  private readonly recorder: UsageRecorder;
  private readonly events: UsageEvents;
  private readonly alerting: AlertWatch | null;

  constructor(
    private readonly tenant: string,
    { log, recorder, events, alerts }: TenantUsageParts,
    private readonly now: () => number,
  ) {
    this.log = log;
    this.recorder = recorder;
    this.events = events;
    this.alerting = alerts;
  }

  async summary(view: ViewOptions): Promise<WindowSums> {
    await this.recorder.flush();
    return this.log.summary({ ...view, tenant: this.tenant, now: this.now() });
  }

  async misses(view: ViewOptions): Promise<WindowMisses> {
    await this.recorder.flush();
    return this.log.misses({ ...view, tenant: this.tenant, now: this.now() });
  }

  async prompts(filter: FilterOptions, before: number | null, limit: number): Promise<UsagePage> {
    await this.recorder.flush();
    return this.log.prompts({ ...filter, tenant: this.tenant }, before, limit);
  }

  /** Null: it is not kept, or no longer. */
  async prompt(userId: UserId, agentId: AgentId | null, requestId: RequestId): Promise<KeptUsage | null> {
    await this.recorder.flush();
    return this.log.prompt({ tenant: this.tenant, userId, agentId, requestId });
  }

  async users(order: ReuseOrder, limit: number): Promise<readonly UserReuse[]> {
    await this.recorder.flush();
    return this.log.users(this.tenant, order, limit);
  }

  async conversations(
    of: Pick<FilterOptions, "userId" | "agentId">,
    order: ReuseOrder,
    limit: number,
  ): Promise<readonly ConversationReuse[]> {
    await this.recorder.flush();
    return this.log.conversations({ ...of, tenant: this.tenant }, order, limit);
  }

  /** Rejects with {@link NotFoundError}. */
  async conversation(
    userId: UserId,
    agentId: AgentId | null,
    conversationId: ConversationId,
    before: number | null,
    limit: number,
  ): Promise<ConversationTurns> {
    await this.recorder.flush();
    const total = await this.log.conversation({ tenant: this.tenant, userId, agentId, conversationId });
    if (total === null)
      throw new NotFoundError("conversation_id", "no prompt of such a conversation of this user is kept");
    // A user without an agent has conversations of its own, with the same names as its agents'.
    const filter = { tenant: this.tenant, userId, agentId, conversationId };
    return { total, turns: await this.log.prompts(filter, before, limit) };
  }

  note(note: Pick<KeptNote, "kind" | "label" | "model"> & { readonly at: number | null }): Promise<KeptNote> {
    return this.recorder.note({ ...note, at: note.at ?? this.now(), tenant: this.tenant });
  }

  /** See {@link UsageEvents.listen}. */
  listen(filter: FilterOptions, limit: number, listener: UsageListener): Promise<(() => void) | null> {
    return this.events.listen({ filter: { ...filter, tenant: this.tenant }, limit }, listener);
  }

  /** The tenant's alert rules, as they were last evaluated. */
  get alerts(): readonly AlertState[] {
    return this.alerting?.statesOf(this.tenant) ?? [];
  }
}
