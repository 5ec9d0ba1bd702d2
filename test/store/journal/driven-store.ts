import {
  type ChatMessage,
  type Composition,
  Conversation,
  type ConversationId,
  compose,
  type Digest,
  digestOf,
  ENGINE_MODELS,
  KEEPS_ALL,
  type Label,
  labelsIn,
  type MemoryId,
  possibleSections,
  prefixExact,
  type RequestId,
  renderSection,
  retained,
  type Scope,
  ScopeState,
  type TurnId,
} from "../../../src/core/index.js";
import type { CommitBase, EngineReport, NamingTurn, Store } from "../../../src/store/api/store.js";
import { countTokens, deltaOf } from "../api/stored-compose.js";

/** What one compose asks. */
export interface Said {
  readonly requestId: string;
  readonly conversationId: string | null;
  readonly question: string;
  readonly system: string;
  readonly memories: readonly { readonly id: string; readonly text: string }[];
  /**
   * How the conversation's history is given: as it was said, in another form of the same meaning, its last messages, or left out; or `told`,
   * with a conversation or without one.
   */
  readonly history: "same" | "restated" | "window" | "told" | "none";
  /** A history that several prompts bring along. */
  readonly told?: readonly ChatMessage[];
  readonly worker: string | null;
  readonly at: number;
}

interface Working {
  readonly state: ScopeState;
  version: CommitBase["version"];
}

/** Everything that refers to text, with `kept` turns left. */
interface Freed {
  readonly labels: ReadonlySet<Label>;
  readonly heads: readonly Digest[];
  readonly messages: NamingTurn["messages"];
}

/** Does with a store what the service does, with scopes that stay in memory between two commits. */
export class DrivenStore {
  readonly #working = new Map<string, Working>();

  constructor(readonly store: Store) {}

  /** Takes scopes out of memory, as another process would have none. */
  drop(): void {
    this.#working.clear();
  }

  /** Gives the prompt, and what was stored of it. */
  async compose(scope: Scope, said: Said): Promise<Composition> {
    const { state, base, settle } = await this.#use(scope);
    const conversationId = said.conversationId as ConversationId | null;
    const before = conversationId === null ? null : await this.store.findHistory(scope, conversationId);
    const given = givenHistory(said, before?.messages ?? []);
    const messages = [{ role: "system", content: said.system }, ...given, { role: "user", content: said.question }];
    const ours = new Set(await this.store.knownSections(scope, possibleSections(messages)));
    const composition = compose(state, {
      conversation:
        conversationId === null
          ? null
          : { id: conversationId, turns: new Conversation(await this.store.loadConversation(scope, conversationId)) },
      messages,
      memories: said.memories.map(({ id, text }) => ({ id: id as MemoryId, text })),
      policy: prefixExact,
      residency: KEEPS_ALL,
      now: said.at,
      memoryBudgetTokens: null,
      memoryBudgetRatio: null,
      annotations: true,
      retention: "keep",
      engine: ENGINE_MODELS.gpu,
      countTokens,
      isOurs: (section) => ours.has(section),
    });
    const { memories, plan, warnings, headTokens } = composition;
    const worker = said.worker === null ? {} : { worker: said.worker };
    const answer = {
      memories,
      plan,
      warnings,
      grounds: { settledAt: said.at, headTokens, besideTokens: headTokens },
      ...worker,
    };
    const request = { id: said.requestId as RequestId, body: digestOf(said.question), answer };
    settle(await this.store.commitCompose(scope, base, { delta: deltaOf(state), composition, request, at: said.at }));
    return composition;
  }

  async report(scope: Scope, requestId: string, observed: EngineReport): Promise<void> {
    const { state, base, settle } = await this.#use(scope);
    const report = { id: requestId as RequestId, observed };
    settle(await this.store.commitReport(scope, base, deltaOf(state), report));
  }

  async evict(scope: Scope, ids: readonly string[]): Promise<void> {
    const { state, base, settle } = await this.#use(scope);
    const live = await this.store.findLiveRequests(scope.tenant, ids as RequestId[]);
    const own = live.filter((found) => found.scope.userId === scope.userId && found.scope.agentId === scope.agentId);
    for (const { leaf, turn } of own) state.evict(leaf, turn);
    const evicted = own.map(({ requestId }) => requestId);
    settle(await this.store.commitEviction(scope, base, deltaOf(state), evicted));
  }

  async update(scope: Scope, memoryId: string, text: string): Promise<void> {
    const { state, base, settle } = await this.#use(scope);
    state.register.resolve([{ id: memoryId as MemoryId, text }]);
    settle(await this.store.commitChanges(scope, base, deltaOf(state)));
  }

  async withdraw(scope: Scope, requestId: string): Promise<void> {
    const { state, base, settle } = await this.#use(scope);
    const served = await this.store.findServed(scope, requestId as RequestId);
    if (served === null) return;
    state.evict(served.leaf, served.turn);
    settle(await this.store.commitWithdrawal(scope, base, deltaOf(state), served.turn));
  }

  /** With every agent. Gives the texts that are gone, as far as no other memory has them. */
  async forget(scope: Scope, memory: string, at: number): Promise<readonly string[]> {
    const { store } = this;
    const memoryId = memory as MemoryId;
    const { tenant, userId } = scope;
    const quotes = await store.findQuotes(tenant, userId, memoryId, [], () => Promise.resolve());
    if (quotes.scopes.size > 1) await store.eraseQuotes(quotes);
    const own = await store.scopesOf(tenant, userId);
    for (const one of own.length > 0 ? own : [scope]) {
      const { state, base, settle } = await this.#use(one);
      const gone = state.register.forget(memoryId);
      state.forget(gone);
      const sectionsOf = (turn: Pick<NamingTurn, "injection" | "retention">) => sectionsIn(turn, state);
      const { others: keptResponses } = await store.responsesGiven(one, gone);
      const record = {
        delta: deltaOf(state),
        memoryId,
        gone,
        quotes,
        sectionsOf,
        keptResponses,
        isInSource: false,
        at,
      };
      settle(await store.commitForgetting(one, base, record));
    }
    // Stores read a user's scopes in an order of their own.
    return [...quotes.texts].sort();
  }

  async expire(scope: Scope, before: number): Promise<void> {
    const { store } = this;
    const { state, base, settle } = await this.#use(scope);
    if (base.version === null) return;
    const { expired, remaining } = await store.scanTurns(scope, before, 0, 1_000);
    if (expired.length === 0) return;
    const ids = expired.map(({ id }) => id).sort((a, b) => a - b);
    const turns = await store.findExpired(scope, before, ids);
    if (remaining.length === 0) {
      await store.commitEnd(scope, base);
      this.drop();
      return;
    }
    const freed = freedBy(expired, remaining);
    for (const { leaf, turn } of turns.live) state.evict(leaf, turn);
    state.forget(state.register.keepOnly(freed.labels));
    const { heads, messages } = freed;
    settle(await store.commitExpiry(scope, base, { delta: deltaOf(state), turns, heads, messages }));
  }

  async deleteUser(scope: Scope): Promise<number> {
    const deleted = await this.store.deleteUser(scope.tenant, scope.userId, false);
    this.drop();
    return deleted;
  }

  async #use(scope: Scope) {
    const key = JSON.stringify([scope.userId, scope.agentId]);
    const deletions = await this.store.deletionsOf(scope.tenant, scope.userId);
    let working = this.#working.get(key);
    const stored = await this.store.versionOf(scope);
    // Erasing quotes is no commit of this scope's, but may be a version.
    if (working === undefined || stored?.commits !== working.version?.commits) {
      const loaded = await this.store.loadScope(scope);
      working = { state: new ScopeState(loaded.scope, countTokens), version: loaded.version };
    }
    const used = working;
    this.#working.set(key, used);
    const settle = (version: CommitBase["version"]) => {
      used.version = version;
    };
    return { state: used.state, base: { version: used.version, deletions }, settle };
  }
}

const ANSWER = { role: "assistant", content: "I see." };

function givenHistory({ history, told = [] }: Said, before: readonly ChatMessage[]): readonly ChatMessage[] {
  if (history === "told") return told;
  if (history === "none" || before.length === 0) return [];
  const whole = [...before, ANSWER];
  if (history === "window") return whole.slice(-4);
  return history === "same" ? whole : whole.map((message) => ({ ...message, content: `${message.content}\n` }));
}

function sectionsIn({ injection, retention }: Pick<NamingTurn, "injection" | "retention">, { register }: ScopeState) {
  return [injection, retained(injection, retention)]
    .map((standing) => renderSection(standing, register.textOf))
    .filter((section) => section !== "")
    .map(digestOf);
}

function freedBy(expired: readonly NamingTurn[], remaining: readonly NamingTurn[]): Freed {
  const without = <Name>(of: (turn: NamingTurn) => readonly Name[]) => {
    const kept = new Set(remaining.flatMap(of));
    return [...new Set(expired.flatMap(of))].filter((name) => !kept.has(name));
  };
  return {
    labels: new Set(remaining.flatMap(({ injection, requested }) => [...labelsIn(injection), ...requested])),
    heads: without(({ head }) => [head]),
    messages: without(({ messages }) => messages),
  };
}

/** Turn ids up to one. */
export function turnsUpTo(last: number): readonly TurnId[] {
  return Array.from({ length: last }, (_, at) => (at + 1) as TurnId);
}
