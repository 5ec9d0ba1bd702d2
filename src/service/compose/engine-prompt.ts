import {
  type ChatMessage,
  digestOf,
  type Injection,
  isEmptyInjection,
  type Plan,
  type RequestId,
  type Scope,
} from "../../core/index.js";
import type { AdapterPrompt } from "../../engines/adapters/engine-adapter.js";

/** What an engine's adapter is told of a composed prompt; the same of a new one and of one that is answered again. */
export interface ServedPrompt {
  readonly requestId: RequestId;
  readonly scope: Scope;
  readonly messages: readonly ChatMessage[];
  /** How many messages at the front are instructions. */
  readonly head: number;
  readonly plan: Pick<Plan, "layout" | "retention" | "stableMessages">;
  /** What this turn put in front of its last message. */
  readonly injection: Injection;
  /** What the tenant's cache salts are made of. */
  readonly cacheSecret: string;
}

/** Says where later prompts will go on, from what the plan says that they keep of this turn. */
export function enginePrompt(served: ServedPrompt): AdapterPrompt {
  const { requestId, scope, messages, head, plan, injection, cacheSecret } = served;
  const section = isEmptyInjection(injection) ? null : messages.length - 1;
  const cachedMessage = plan.stableMessages - 1;
  const ends = [goesOnAfter(served, section), head - 1].filter((at) => at >= 0);
  return {
    requestId,
    ...cacheKeys(scope, cacheSecret),
    messages,
    reusableMessages: [...new Set(ends)],
    ...(section !== null && repeatsMemories(plan) ? { reusableMemories: section } : {}),
    ...(cachedMessage < 0 ? {} : { cachedMessage }),
  };
}

/**
 * What an adapter is told of messages that were not composed: whose they are, so that tenants' caches stay apart. Nothing of them is
 * foreseen.
 */
export function plainPrompt(requestId: RequestId, scope: Scope, cacheSecret: string): AdapterPrompt {
  return { requestId, ...cacheKeys(scope, cacheSecret), messages: [], reusableMessages: [] };
}

function cacheKeys(scope: Scope, cacheSecret: string): Pick<AdapterPrompt, "tenantKey" | "scopeKey"> {
  return {
    tenantKey: digestOf(JSON.stringify(["memstem tenant", cacheSecret])),
    scopeKey: digestOf(JSON.stringify(["memstem scope", cacheSecret, scope.userId, scope.agentId])),
  };
}

/** The message up to whose end the next prompt is this one. */
function goesOnAfter({ messages, plan, injection }: ServedPrompt, section: number | null): number {
  const keepsAll =
    section === null ||
    (plan.layout === "conversation" &&
      (plan.retention === "keep" || (plan.retention === "volatile" && injection.annotations.length === 0)));
  return keepsAll ? messages.length - 1 : section - 1;
}

/** A single prompt's memories may come with another question; a conversation's stay, or are asked about again. */
function repeatsMemories({ layout, retention }: ServedPrompt["plan"]): boolean {
  return layout === "single" || retention !== "ephemeral";
}
