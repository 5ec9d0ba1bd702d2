import {
  Conversation,
  type ConversationId,
  compose,
  digestOf,
  ENGINE_MODELS,
  KEEPS_ALL,
  type MemoryId,
  possibleSections,
  prefixExact,
  type RequestId,
  type Scope,
  ScopeState,
  type TokenCounter,
  type UserId,
} from "../../../src/core/index.js";
import type { CommitBase, ComposeRecord, ScopeDelta, Store, StoredVersion } from "../../../src/store/api/store.js";

export const countTokens: TokenCounter = (text) => Math.ceil(text.length / 4);

export function scopeOf(userId: string, tenant = "default"): Scope {
  return { tenant, userId: userId as UserId, agentId: null };
}

export const id = (name: string) => name as RequestId;

/** All that is stored of a scope, what is read only when it is asked for included: to be compared with what it is later. */
export async function allOf(store: Store, scope: Scope) {
  const { scope: stored, version } = await store.loadScope(scope);
  const { published, ...eager } = stored;
  return { version, scope: { ...eager, clusters: published.clusters, accesses: published.accesses } };
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
export async function recordFor(
  store: Store,
  scope: Scope,
  asked: Asked,
): Promise<{ base: CommitBase; record: ComposeRecord }> {
  const { scope: stored, version, deletions } = await store.loadScope(scope);
  const state = new ScopeState(stored, countTokens);
  const conversationId = asked.conversationId as ConversationId | undefined;
  const spoken = [...(asked.history ?? []), asked.question];
  const messages = [
    { role: "system", content: "Be kind." },
    ...spoken.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content })),
  ];
  const ours = new Set(await store.knownSections(scope, possibleSections(messages)));
  const composition = compose(state, {
    conversation:
      conversationId === undefined
        ? null
        : { id: conversationId, turns: new Conversation(await store.loadConversation(scope, conversationId)) },
    messages,
    memories: Object.entries(asked.memories).map(([memory, text]) => ({ id: memory as MemoryId, text })),
    policy: prefixExact,
    residency: KEEPS_ALL,
    now: 1_700_000_000_000,
    memoryBudgetTokens: null,
    memoryBudgetRatio: null,
    annotations: true,
    retention: "keep",
    engine: ENGINE_MODELS.gpu,
    countTokens,
    isOurs: (section) => ours.has(section),
  });
  const record: ComposeRecord = {
    delta: deltaOf(state),
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
  return { base: { version, deletions }, record };
}

/** What changed in a scope. */
export function deltaOf(state: ScopeState): ScopeDelta {
  return { changes: state.drain(), whole: () => state.stored() };
}

/** A scope as it is stored, and what a commit builds on. */
export async function stateOf(store: Store, scope: Scope): Promise<{ state: ScopeState; base: CommitBase }> {
  const { scope: stored, version, deletions } = await store.loadScope(scope);
  return { state: new ScopeState(stored, countTokens), base: { version, deletions } };
}

/** Composes and commits one request. */
export async function composeInto(store: Store, scope: Scope, asked: Asked): Promise<StoredVersion> {
  const { base, record } = await recordFor(store, scope, asked);
  return await store.commitCompose(scope, base, record);
}
