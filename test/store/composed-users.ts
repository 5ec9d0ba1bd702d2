import {
  type ChatMessage,
  type ComposeInput,
  type Composition,
  Conversation,
  type ConversationId,
  compose,
  digestOf,
  ENGINE_MODELS,
  type EngineReport,
  endlessLookup,
  type MemoryId,
  type NewPrompt,
  possibleSections,
  prefixExact,
  type RequestId,
  type RetentionName,
  renderSection,
  type Scope,
  ScopeState,
  type SentAfter,
  type StoredScope,
  type TokenCounter,
  type UserId,
} from "../../src/core/index.js";
import type {
  ComposeRecord,
  ForgottenMemory,
  HeldScope,
  KnownScope,
  ScopeDelta,
  ScopeVersion,
  Store,
} from "../../src/store/store.js";

const countTokens: TokenCounter = (text) => Math.ceil(text.length / 4);

export function scopeOf(userId: string, tenant = "default"): Scope {
  return { tenant, userId: userId as UserId, agentId: null };
}

export const requestId = (name: string) => name as RequestId;
export const conversationId = (name: string) => name as ConversationId;
export const memoryId = (name: string) => name as MemoryId;

/** When composes of tests take place, unless they say. */
export const NOW = 1_700_000_000_000;

/** One compose, short. */
export interface Said {
  readonly requestId: string;
  readonly question: string;
  /** Texts by id, most relevant first. */
  readonly memories: Readonly<Record<string, string>>;
  readonly conversation?: string;
  /** The messages before the question; texts are a user's and an assistant's by turns. Absent: all that was said. */
  readonly history?: readonly (string | ChatMessage)[];
  readonly system?: string;
  readonly worker?: string;
  readonly at?: number;
  readonly retention?: RetentionName;
  readonly policy?: ComposeInput["policy"];
  readonly memoryBudgetTokens?: number;
  readonly sentAfter?: SentAfter;
}

interface Working extends KnownScope {
  readonly state: ScopeState;
}

/** Does with a store what the service does; scopes stay in memory between two commits. */
export class ComposedUsers {
  readonly #working = new Map<string, Working>();

  constructor(readonly store: Store) {}

  drop(): void {
    this.#working.clear();
  }

  state(scope: Scope): ScopeState | undefined {
    return this.#working.get(nameOf(scope))?.state;
  }

  /** Stores one compose, and gives the prompt. */
  async compose(scope: Scope, said: Said): Promise<Composition> {
    return this.#use(scope, async (held, state) => {
      const record = await this.record(held, state, said);
      return { version: await held.commitCompose(record), gives: record.composition };
    });
  }

  /** What a compose is stored as. */
  async record(
    { version }: HeldScope,
    state: ScopeState,
    said: Said,
  ): Promise<ComposeRecord & { composition: Composition }> {
    const { store } = this;
    const { at = NOW, conversation, system = "Be kind." } = said;
    const scopeId = version?.scopeId ?? 0;
    const id = conversation === undefined ? null : conversationId(conversation);
    const before = id === null ? null : await store.findHistory(scopeId, id);
    const history = said.history ?? (before === null ? [] : [...before.messages, ANSWER]);
    const messages = [
      ...(system === "" ? [] : [{ role: "system", content: system }]),
      ...history.map(messageAt),
      { role: "user", content: said.question },
    ];
    const ours = new Set(await store.knownSections(scopeId, possibleSections(messages)));
    const turns = id === null ? null : new Conversation((await store.loadConversation(scopeId, id)).turns);
    const composition = compose(state, {
      conversation: id === null || turns === null ? null : { id, turns },
      messages,
      memories: Object.entries(said.memories).map(([memory, text]) => ({ id: memoryId(memory), text })),
      policy: said.policy ?? prefixExact,
      cache: endlessLookup(),
      now: at,
      memoryBudgetTokens: said.memoryBudgetTokens ?? null,
      memoryBudgetRatio: null,
      annotations: true,
      retention: said.retention ?? "keep",
      engine: ENGINE_MODELS.gpu,
      countTokens,
      isOurs: (section) => ours.has(section),
    });
    const { memories, plan, warnings, headTokens, turn } = composition;
    const section = renderSection(turn.injection, state.register.textOf);
    const grounds = { settledAt: at, headTokens, besideTokens: headTokens };
    const answer = { memories, plan, warnings, grounds, ...(said.worker === undefined ? {} : { worker: said.worker }) };
    return {
      composition,
      section: section === "" ? null : section,
      delta: deltaOf(state),
      request: { id: requestId(said.requestId), body: digestOf(said.question), answer },
      prompt: figuresOf(composition),
      sentAfter: id === null ? null : (said.sentAfter ?? null),
      at,
    };
  }

  report(scope: Scope, request: string, observed: EngineReport): Promise<void> {
    return this.#use(scope, async (held, state) => {
      const id = requestId(request);
      const served = await this.store.findServed(held.version?.scopeId ?? 0, id);
      if (served === null) return null;
      const report = { id, turn: served.turn, observed, prompt: null };
      return { version: await held.commitReport(deltaOf(state), report), gives: undefined };
    });
  }

  evict(scope: Scope, requests: readonly string[]): Promise<void> {
    return this.#use(scope, async (held, state) => {
      const live = await this.store.findLiveRequests(scope.tenant, requests.map(requestId));
      const own = live.filter((found) => nameOf(found.scope) === nameOf(scope));
      for (const { leaf } of own) state.index.evict(leaf);
      const ids = own.map((found) => found.requestId);
      return { version: await held.commitEviction(deltaOf(state), ids), gives: undefined };
    });
  }

  update(scope: Scope, memory: string, text: string): Promise<void> {
    return this.#use(scope, async (held, state) => {
      state.register.resolve([{ id: memoryId(memory), text }]);
      return { version: await held.commitChanges(deltaOf(state)), gives: undefined };
    });
  }

  withdraw(scope: Scope, request: string): Promise<void> {
    return this.#use(scope, async (held, state) => {
      const served = await this.store.findServed(held.version?.scopeId ?? 0, requestId(request));
      if (served === null) return null;
      state.index.evict(served.leaf);
      return { version: await held.commitWithdrawal(deltaOf(state), served.turn), gives: undefined };
    });
  }

  /** A scope that is stored, as new as it is there; null where there is none. */
  async look(scope: Scope): Promise<ScopeState | null> {
    if ((await this.store.find(scope)) === null) return null;
    return this.#use(scope, async ({ version }, state) => (version === null ? null : { version, gives: state }));
  }

  async forget(scope: Scope, memory: string, texts: readonly string[] = [], at = NOW): Promise<ForgottenMemory> {
    this.drop();
    return this.store.forget(scope, memoryId(memory), { texts, isInSource: false, at });
  }

  async expire(scope: Scope, before: number): Promise<number> {
    this.drop();
    return this.store.expire(scope, before);
  }

  async deleteUser(scope: Scope): Promise<number> {
    this.drop();
    return this.store.deleteUser(scope, false, NOW);
  }

  /** The scope's number; 0: it is not stored. */
  async numberOf(scope: Scope): Promise<number> {
    return (await this.store.find(scope)) ?? 0;
  }

  async #use<T>(
    scope: Scope,
    work: (held: HeldScope, state: ScopeState) => Promise<{ version: ScopeVersion; gives: T } | null>,
  ): Promise<T> {
    await this.store.begin(scope, NOW);
    const known = this.#working.get(nameOf(scope)) ?? null;
    return this.store.hold(scope, known, async (held) => {
      const state = held.newer === null ? known?.state : new ScopeState(held.newer, countTokens);
      if (state === undefined) throw new Error("nothing is known, and nothing came");
      const done = await work(held, state);
      if (done !== null) {
        const { version } = done;
        const working = { version, userNumber: held.userNumber, stored: () => state.stored(), state };
        this.#working.set(nameOf(scope), working);
      }
      return done?.gives as T;
    });
  }
}

const ANSWER: ChatMessage = { role: "assistant", content: "I see." };

function messageAt(message: string | ChatMessage, at: number): ChatMessage {
  return typeof message === "string" ? { role: at % 2 === 0 ? "user" : "assistant", content: message } : message;
}

function nameOf({ tenant, userId, agentId }: Scope): string {
  return JSON.stringify([tenant, userId, agentId]);
}

function deltaOf(state: ScopeState): ScopeDelta {
  return { changes: state.drain(), whole: () => state.stored() };
}

function figuresOf({ plan, byHand }: Composition): NewPrompt {
  return {
    model: "gpt",
    engine: "vllm",
    layout: plan.layout,
    policy: plan.policy,
    retention: plan.retention,
    epoch: null,
    byHand,
    usage: {
      promptTokens: plan.totalTokens,
      expectedTokens: plan.expectedCachedTokens,
      carriedTokens: 0,
      planned: plan.miss,
      miss: plan.miss,
      report: null,
      firstTokenMs: null,
    },
    apart: null,
    savedMoney: null,
    missedMoney: null,
  };
}

/** What is stored of a scope, as a process that starts reads it. */
export function storedOf(store: Store, scope: Scope) {
  return store.hold(scope, null, async ({ newer, version, userNumber }) => ({
    stored: newer && loaded(newer),
    version,
    userNumber,
  }));
}

/** A state as it is once loaded, which derives some times of use from others. */
export function loaded(stored: StoredScope): StoredScope {
  return new ScopeState(stored, countTokens).stored();
}
