import {
  Conversation,
  type ConversationId,
  compose,
  DEFAULT_ANNOTATIONS,
  digestOf,
  ENGINE_MODELS,
  KEEPS_ALL,
  type MemoryId,
  prefixExact,
  type RequestId,
  type Scope,
  ScopeState,
  type TokenCounter,
  type UserId,
} from "../../../src/core/index.js";
import type { ComposeRecord, Store, StoredVersion } from "../../../src/store/api/store.js";

export const countTokens: TokenCounter = (text) => Math.ceil(text.length / 4);

export function scopeOf(userId: string, tenant = "default"): Scope {
  return { tenant, userId: userId as UserId, agentId: null };
}

export const id = (name: string) => name as RequestId;

/** All that is stored of a scope, what is read only when it is asked for included: to be compared with what it is later. */
export function allOf(store: Store, scope: Scope) {
  const { scope: stored, version } = store.loadScope(scope);
  const { published, ...eager } = stored;
  return { version, scope: { ...eager, clusters: published.clusters(), accesses: published.accesses() } };
}

/** What a compose is made of, short. */
export interface Asked {
  readonly requestId: string;
  readonly question: string;
  readonly memories: Readonly<Record<string, string>>;
  readonly conversationId?: string;
  readonly history?: readonly string[];
}

/** Loads a scope from a store, composes one request in it, and gives what is to be committed. */
export function recordFor(
  store: Store,
  scope: Scope,
  asked: Asked,
): { version: StoredVersion | null; record: ComposeRecord } {
  const { scope: stored, version } = store.loadScope(scope);
  const state = new ScopeState(stored, countTokens);
  const conversationId = asked.conversationId as ConversationId | undefined;
  const spoken = [...(asked.history ?? []), asked.question];
  const composition = compose(state, {
    conversation:
      conversationId === undefined
        ? null
        : { id: conversationId, turns: new Conversation(store.loadConversation(scope, conversationId)) },
    messages: [
      { role: "system", content: "Be kind." },
      ...spoken.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content })),
    ],
    memories: Object.entries(asked.memories).map(([memory, text]) => ({ id: memory as MemoryId, text })),
    policy: prefixExact,
    residency: KEEPS_ALL,
    now: 1_700_000_000_000,
    memoryBudgetTokens: null,
    memoryBudgetRatio: null,
    annotations: DEFAULT_ANNOTATIONS,
    retention: "keep",
    engine: ENGINE_MODELS.gpu,
    countTokens,
    isOurs: (section) => store.knowsSection(scope, section),
  });
  const record: ComposeRecord = {
    changes: state.drain(),
    composition,
    request: {
      id: asked.requestId as RequestId,
      body: digestOf("body"),
      answer: {
        memories: composition.memories,
        plan: composition.plan,
        warnings: composition.warnings,
        grounds: { settledAt: 1_700_000_000_000, headTokens: composition.headTokens },
      },
    },
    at: 1_700_000_000_000,
  };
  return { version, record };
}

/** Composes and commits one request. */
export function composeInto(store: Store, scope: Scope, asked: Asked): StoredVersion {
  const { version, record } = recordFor(store, scope, asked);
  return store.commitCompose(scope, version, record);
}
