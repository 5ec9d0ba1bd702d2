import fc from "fast-check";
import type { RetrievedMemory } from "../../../src/core/blocks/context-block.js";
import { renderMemory } from "../../../src/core/blocks/dated-memory.js";
import { type CacheReport, IN_FLIGHT_MS, takeReport } from "../../../src/core/cache/cache-report.js";
import { endlessLookup } from "../../../src/core/cache/engine-cache.js";
import { KEEPS_ALL, type ResidencyModel } from "../../../src/core/cache/residency.js";
import { type Composition, compose } from "../../../src/core/compose/compose.js";
import type { ComposeInput } from "../../../src/core/compose/compose-input.js";
import type { Depth } from "../../../src/core/compose/depth.js";
import { draftPrompt, type PromptDraft } from "../../../src/core/compose/draft.js";
import {
  DEFAULT_SCOPE_BOUNDS,
  EMPTY_SCOPE,
  foldScope,
  type ScopeBounds,
  type ScopeChanges,
  ScopeState,
  type StoredScope,
} from "../../../src/core/compose/scope-state.js";
import {
  Conversation,
  DROPS_NOTHING,
  type RetentionName,
  standingInjections,
  standingOf,
  type Turn,
} from "../../../src/core/conversation/conversation.js";
import type { Annotations } from "../../../src/core/conversation/injecting.js";
import type { DedupeName } from "../../../src/core/conversation/repeats.js";
import { ENGINE_MODELS, type EngineModel } from "../../../src/core/cost/engine-model.js";
import { prefixExact } from "../../../src/core/ordering/ordering.js";
import { labelsIn } from "../../../src/core/prompt/section.js";
import type { ScopePolicy } from "../../../src/core/published/published-knowledge.js";
import type { ConversationId, Digest, MemoryId, NodeId, TurnId } from "../../../src/core/text/ids.js";
import type { ChatMessage, TokenCounter } from "../../../src/core/text/message.js";

/** A tokenizer simple enough to follow by hand. */
export const countTokens: TokenCounter = (text) => Math.ceil(text.length / 4);

/** A memory as a search returns it. */
export function memory(id: string, text = `The user's ${id} is known.`): RetrievedMemory {
  return { id: id as MemoryId, text };
}

/** Several memories with texts of their own, in relevance order. */
export function memories(...ids: readonly string[]): RetrievedMemory[] {
  return ids.map((id) => memory(id));
}

export function user(content: string): ChatMessage {
  return { role: "user", content };
}

export function assistant(content: string): ChatMessage {
  return { role: "assistant", content };
}

export function system(content: string): ChatMessage {
  return { role: "system", content };
}

/** An assistant's tool call and the tool's result. */
export function toolExchange(result: string): ChatMessage[] {
  const call = { id: "call_1", type: "function", function: { name: "look_up", arguments: "{}" } };
  return [
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", content: result, tool_call_id: "call_1" },
  ];
}

/** How one request differs from the usual. */
export interface ComposeOptions {
  readonly conversation?: string;
  readonly annotations?: Annotations;
  readonly policy?: ScopePolicy;
  readonly memoryBudgetTokens?: number;
  readonly memoryBudgetRatio?: number;
  readonly retention?: RetentionName;
  readonly engine?: EngineModel;
  readonly depth?: Depth;
  readonly ended?: ComposeInput["ended"];
  readonly inResult?: boolean;
  readonly maxPromptTokens?: number;
  readonly shareTokens?: number | undefined;
  readonly acceptedTokens?: number;
  readonly dedupe?: DedupeName;
  readonly keepsInstructions?: boolean;
}

/** With what memories are written with labels, which annotations name. */
export const LABELLED: ComposeOptions = { annotations: "paper" };

/** Both forms in which memories are written: as a list, and with labels. */
export const FORMS = [
  ["as a list", {}],
  ["with labels", LABELLED],
] as const satisfies readonly (readonly [string, ComposeOptions])[];
export const anyForm = fc.constantFrom<ComposeOptions>(...FORMS.map(([, options]) => options));

/** One user's scope and what a service keeps around it: stored turns, stored rows, and which sections were sent. */
export class UserScope {
  #state: ScopeState;
  readonly #turns = new Map<ConversationId, Turn[]>();
  readonly #sections = new Set<Digest>();
  readonly #composedAt = new Map<TurnId, number>();
  /** Everything that was stored so far, change by change. */
  readonly stored: ScopeChanges[] = [];
  /** What time it is, in milliseconds; the test's to move on. */
  now = 0;

  constructor(
    stored: StoredScope = EMPTY_SCOPE,
    private readonly residency: ResidencyModel = KEEPS_ALL,
    private readonly bounds: ScopeBounds = DEFAULT_SCOPE_BOUNDS,
    private readonly untrustedOrigins?: ReadonlySet<string>,
  ) {
    this.#state = new ScopeState(stored, countTokens, bounds, untrustedOrigins);
  }

  get state(): ScopeState {
    return this.#state;
  }

  /** Composes as a service does; without a conversation it is the `single` layout. */
  compose(
    messages: readonly ChatMessage[],
    retrieved: readonly RetrievedMemory[],
    options: ComposeOptions = {},
  ): Composition {
    const stored = this.#turnsOf((options.conversation ?? null) as ConversationId | null);
    const composition = compose(this.#state, this.#input(messages, retrieved, options));
    const { freshStart, freshStartReason } = composition.plan;
    if (freshStart !== (freshStartReason !== undefined))
      throw new Error("a fresh start says why, and nothing else does");
    for (const { turn } of composition.restated) stored.push(structuredClone(turn));
    stored.push(structuredClone(composition.turn));
    this.#composedAt.set(composition.turn.id, this.now);
    for (const section of composition.sections) this.#sections.add(section);
    this.store();
    return composition;
  }

  /** The prompt that would be composed, with nothing served. */
  draft(
    messages: readonly ChatMessage[],
    retrieved: readonly RetrievedMemory[],
    options: ComposeOptions = {},
  ): PromptDraft {
    return draftPrompt(this.#state, this.#input(messages, retrieved, options));
  }

  #input(
    messages: readonly ChatMessage[],
    retrieved: readonly RetrievedMemory[],
    options: ComposeOptions,
  ): ComposeInput {
    const id = (options.conversation ?? null) as ConversationId | null;
    const stored = this.#turnsOf(id);
    return {
      conversation: id === null ? null : { id, turns: this.#state.conversation(id, () => new Conversation(stored)) },
      messages,
      memories: retrieved.map((one) => renderMemory(one, false, Number.POSITIVE_INFINITY).memory),
      policy: options.policy ?? prefixExact,
      cache: { ...endlessLookup(this.residency), shareTokens: options.shareTokens ?? Number.POSITIVE_INFINITY },
      now: this.now,
      memoryBudgetTokens: options.memoryBudgetTokens ?? null,
      memoryBudgetRatio: options.memoryBudgetRatio ?? null,
      annotations: options.annotations ?? true,
      retention: options.retention ?? "keep",
      engine: options.engine ?? ENGINE_MODELS.gpu,
      depth: options.depth,
      ended: options.ended,
      inResult: options.inResult,
      maxPromptTokens: options.maxPromptTokens,
      acceptedTokens: options.acceptedTokens,
      dedupe: options.dedupe,
      keepsInstructions: options.keepsInstructions,
      countTokens,
      isOurs: (section) => this.#sections.has(section),
    };
  }

  /** Forgets a memory everywhere, as a service does: register, index, and the stored turns of every conversation. */
  forget(id: string): void {
    const gone = this.#state.register.forget(id as MemoryId);
    this.#state.forget(gone);
    for (const turns of this.#turns.values()) {
      const first = turns.findIndex(({ injection }) => [...labelsIn(injection)].some((label) => gone.has(label)));
      if (first >= 0) turns.splice(first);
      for (const [at, turn] of turns.entries())
        turns[at] = { ...turn, requested: turn.requested.filter((label) => !gone.has(label)) };
    }
    this.#state.unloadConversations();
    this.store();
  }

  /** The texts that a composed prompt gives and says to be superseded. */
  supersededIn({ turn }: Composition): ReadonlySet<string> {
    const turns = this.#turnsOf(turn.conversationId);
    const path: Turn[] = [turn];
    for (let parent = turn.parent; parent !== null; parent = path[0]?.parent ?? null)
      path.unshift(...turns.filter(({ id }) => id === parent));
    const { replaced } = standingOf(standingInjections(path, DROPS_NOTHING));
    return new Set([...replaced.keys()].flatMap((label) => this.#state.register.get(label)?.text ?? []));
  }

  /** The engine evicted the request that ended at this node. */
  evict(node: NodeId): void {
    this.#state.index.evict(node);
    this.store();
  }

  report(
    { leaf, turn, plan, headTokens }: Composition,
    cachedTokens: number,
    promptTokens: CacheReport["promptTokens"] = null,
  ): void {
    const settledAt = (this.#composedAt.get(turn.id) ?? 0) - IN_FLIGHT_MS;
    const request = { leaf, turn: turn.id, plan, grounds: { settledAt, headTokens } };
    takeReport(this.#state.index, request, { cachedTokens, promptTokens }, this.now);
    this.store();
  }

  /** Drops the working state and loads it from what was stored, as after a crash. */
  restart(from: StoredScope = foldScope(EMPTY_SCOPE, structuredClone(this.stored))): void {
    this.#state = new ScopeState(from, countTokens, this.bounds, this.untrustedOrigins);
  }

  store(): void {
    this.stored.push(this.#state.drain());
  }

  /** Removes a conversation, with the blocks that no other one names. */
  expire(id: string): void {
    this.#turns.delete(id as ConversationId);
    const turns = [...this.#turns.values()].flat();
    const named = turns.flatMap(({ injection, requested }) => [...labelsIn(injection), ...requested]);
    this.#state.forget(this.#state.register.keepOnly(new Set(named)));
    this.store();
  }

  #turnsOf(id: ConversationId | null): Turn[] {
    if (id === null) return [];
    const turns = this.#turns.get(id) ?? [];
    this.#turns.set(id, turns);
    return turns;
  }
}

/** A client that keeps the plain history of one conversation. */
export class Chat {
  readonly history: ChatMessage[];

  constructor(
    readonly scope: UserScope,
    readonly id = "chat",
    instructions: string | null = "You are helpful.",
    /** For each request, where it says nothing else. */
    private readonly options: ComposeOptions = {},
  ) {
    this.history = instructions === null ? [] : [system(instructions)];
  }

  /** Asks the next question; the answer is {@link answer}'s to add. */
  ask(question: string, retrieved: readonly RetrievedMemory[] = [], options: ComposeOptions = {}): Composition {
    return this.send([user(question)], retrieved, options);
  }

  /** Adds messages to the history and has the prompt composed. */
  send(
    messages: readonly ChatMessage[],
    retrieved: readonly RetrievedMemory[] = [],
    options: ComposeOptions = {},
  ): Composition {
    this.history.push(...messages);
    return this.again(retrieved, options);
  }

  /** Has the prompt composed for the history as it stands: a regenerated answer, or one to an edited history. */
  again(retrieved: readonly RetrievedMemory[] = [], options: ComposeOptions = {}): Composition {
    return this.scope.compose(this.history, retrieved, { conversation: this.id, ...this.options, ...options });
  }

  answer(text: string): void {
    this.history.push(assistant(text));
  }
}
