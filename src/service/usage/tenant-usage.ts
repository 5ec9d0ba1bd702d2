import type { AgentId, RequestId, UserId, WindowMisses, WindowSums } from "../../core/index.js";
import type { PromptFilter, PromptPage, PromptTable, PromptView, StoredFigures } from "../../store/prompt-figures.js";

export {
  MISS_CAUSES,
  type MissCause,
  newTokens,
  type TimedSums,
  timeAt,
  uncachedTokens,
  type WindowMisses,
  type WindowSums,
} from "../../core/index.js";
export type { PromptPage, StoredFigures } from "../../store/prompt-figures.js";

export type ViewOptions = Omit<PromptView, "tenant" | "now">;
/** Which prompts a list has. */
export type FilterOptions = Omit<PromptFilter, "tenant">;

/** One tenant's prompts: the only way from a route to their figures. */
export class TenantUsage {
  constructor(
    private readonly tenant: string,
    private readonly prompts: PromptTable,
    private readonly now: () => number,
    /** Whether prompts cost money instead of time. */
    readonly hasPrices: boolean,
  ) {}

  summary(view: ViewOptions): Promise<WindowSums> {
    return this.prompts.summary({ ...view, tenant: this.tenant, now: this.now() });
  }

  misses(view: ViewOptions): Promise<WindowMisses> {
    return this.prompts.misses({ ...view, tenant: this.tenant, now: this.now() });
  }

  page(filter: FilterOptions, before: number | null, limit: number): Promise<PromptPage> {
    return this.prompts.page({ ...filter, tenant: this.tenant }, before, limit);
  }

  /** Null: not stored, or no longer. */
  prompt(userId: UserId, agentId: AgentId | null, requestId: RequestId): Promise<StoredFigures | null> {
    return this.prompts.prompt({ tenant: this.tenant, userId, agentId, requestId });
  }
}
