import { BlockRegister } from "../blocks/block-register.js";
import type { MemoryVersion, RegisterChanges, StoredRegister } from "../blocks/context-block.js";
import { hasNoText } from "../blocks/memory-versions.js";
import { ContextIndex } from "../cache/context-index.js";
import type { IndexNode } from "../cache/index-node.js";
import type { Conversation } from "../conversation/conversation.js";
import { RecentRetrievals } from "../ordering/ordering.js";
import type { TurnRow } from "../ordering/turn-rows.js";
import {
  NO_PUBLISHED_ROWS,
  type PublishedChanges,
  PublishedKnowledge,
  type PublishedRows,
  type WithPublished,
} from "../published/published-knowledge.js";
import { WorkerBlocks, type WorkerRow } from "../routing/worker-routing.js";
import { keptIn, LruMap, type RowChanges } from "../text/collections.js";
import type { ConversationId, Digest, Label, MemoryId, NodeId, TurnId } from "../text/ids.js";
import type { TokenCounter } from "../text/message.js";

/** They only ascend, so no id is used twice. */
export interface ScopeCounters {
  readonly nextLabel: number;
  readonly nextNode: number;
  /** Turn ids are also the scope's logical clock. */
  readonly nextTurn: number;
}

/** Without conversations, which load one by one. */
export interface StoredScope extends PublishedRows {
  readonly counters: ScopeCounters;
  /** Balance of the memory bank. */
  readonly bankedTokens: number;
  readonly register: StoredRegister;
  readonly nodes: readonly IndexNode[];
  readonly recent: readonly TurnRow[];
  readonly workers: readonly WorkerRow[];
}

export const EMPTY_SCOPE: StoredScope = {
  counters: { nextLabel: 1, nextNode: 1, nextTurn: 1 },
  bankedTokens: 0,
  register: { blocks: [], versions: [], forgotten: [] },
  nodes: [],
  recent: [],
  workers: [],
  ...NO_PUBLISHED_ROWS,
};

/** What composes changed, to be stored in one transaction. */
export interface ScopeChanges extends PublishedChanges {
  readonly counters: ScopeCounters;
  readonly bankedTokens: number;
  readonly register: RegisterChanges;
  readonly nodes: RowChanges<NodeId, IndexNode>;
  readonly recent: RowChanges<TurnId, TurnRow>;
  readonly workers: RowChanges<number, WorkerRow>;
}

export interface ScopeBounds {
  /** Of the context index and of the cluster tree; LRU leaves are evicted from memory and disk. */
  readonly maxIndexNodes: number;
  /** The LRU conversation is unloaded, not deleted. */
  readonly maxLoadedConversations: number;
}

export const DEFAULT_SCOPE_BOUNDS: ScopeBounds = { maxIndexNodes: 20_000, maxLoadedConversations: 32 };

/** Distinct instructions whose token counts are kept. */
const MOST_HEADS = 4;

/** The working state of one scope. After a change, store what {@link drain} returns, or discard the state. */
export class ScopeState implements WithPublished {
  readonly register: BlockRegister;
  readonly index: ContextIndex;
  readonly recent: RecentRetrievals;
  readonly published: PublishedKnowledge;
  readonly workers: WorkerBlocks;
  /** Token counts of recent instructions, which are long and repeat. Not stored. */
  readonly headTokens = new LruMap<Digest, number>(MOST_HEADS);
  /** Tokens that prompts with a memory budget ratio left unused. */
  bankedTokens: number;
  readonly #conversations: LruMap<ConversationId, Conversation>;
  #nextTurn: number;

  constructor(
    stored: StoredScope,
    countTokens: TokenCounter,
    bounds: ScopeBounds = DEFAULT_SCOPE_BOUNDS,
    untrustedOrigins?: ReadonlySet<string>,
  ) {
    this.register = new BlockRegister(stored.register, stored.counters.nextLabel, countTokens, untrustedOrigins);
    const blockTokens = (label: Label) => this.register.get(label)?.tokens ?? 0;
    const { maxIndexNodes } = bounds;
    this.published = new PublishedKnowledge(stored, maxIndexNodes);
    this.index = new ContextIndex(stored.nodes, stored.counters.nextNode, maxIndexNodes, blockTokens, this.published);
    this.recent = new RecentRetrievals(stored.recent);
    this.workers = new WorkerBlocks(stored.workers);
    this.bankedTokens = stored.bankedTokens;
    this.#conversations = new LruMap(bounds.maxLoadedConversations);
    this.#nextTurn = stored.counters.nextTurn;
  }

  /** The newest turn's id: the scope's logical clock. */
  get clock(): number {
    return this.#nextTurn - 1;
  }

  newTurnId(): TurnId {
    return this.#nextTurn++ as TurnId;
  }

  /** Records that a batch worker processed these texts. */
  rememberWorker(name: string, texts: readonly string[]): void {
    this.workers.take(
      name,
      texts.flatMap((text) => this.register.withText(text) ?? []),
    );
  }

  /** Removes every trace of forgotten blocks. */
  forget(gone: ReadonlySet<Label>): void {
    for (const knowledge of [this.index, this.recent, this.published, this.workers]) knowledge.forget(gone);
    this.unloadConversations();
  }

  /** `load` reads the turns if they are not in memory. */
  conversation(id: ConversationId, load: () => Conversation): Conversation {
    const loaded = this.loadedConversation(id);
    if (loaded !== undefined) return loaded;
    const conversation = load();
    this.#conversations.set(id, conversation);
    return conversation;
  }

  loadedConversation(id: ConversationId): Conversation | undefined {
    const loaded = this.#conversations.get(id);
    return loaded?.isOvergrown ? undefined : loaded;
  }

  /** For when the stored turns changed. */
  unloadConversations(): void {
    this.#conversations.clear();
  }

  /** Estimated bytes, for the bound on all working state. */
  get weight(): number {
    let weight = 2_000 + 2 * this.register.textLength + 600 * this.register.size + 600 * this.index.size;
    weight += 2_000 * this.recent.size + this.workers.weight + this.published.weight;
    for (const conversation of this.#conversations.values()) weight += conversation.weight;
    return weight;
  }

  /** Includes changes not yet drained. Later changes do not reach it. O(state). */
  stored(): StoredScope {
    return {
      counters: this.#counters(),
      bankedTokens: this.bankedTokens,
      register: this.register.stored(),
      nodes: this.index.stored(),
      recent: this.recent.stored(),
      workers: this.workers.stored(),
      ...this.published.stored(),
    };
  }

  drain(): ScopeChanges {
    return {
      counters: this.#counters(),
      bankedTokens: this.bankedTokens,
      register: this.register.drain(),
      nodes: this.index.drain(),
      recent: this.recent.drain(),
      workers: this.workers.drain(),
      ...this.published.drain(),
    };
  }

  #counters(): ScopeCounters {
    return { nextLabel: this.register.nextLabel, nextNode: this.index.nextId, nextTurn: this.#nextTurn };
  }
}

/** The changes that lead from {@link EMPTY_SCOPE} to a state. */
export function changesTo({ counters, bankedTokens, register, ...rows }: StoredScope): ScopeChanges {
  const added = <Key, Row>(upserted: readonly Row[]): RowChanges<Key, Row> => ({ upserted, removed: [] });
  return {
    counters,
    bankedTokens,
    register: { ...register, removedBlocks: [] },
    nodes: added(rows.nodes),
    recent: added(rows.recent),
    workers: added(rows.workers),
    clusters: added(rows.clusters),
    accesses: added(rows.accesses),
  };
}

/** Applies changes to a stored state, as a store does for the next load. O(state + all changes); shares rows with its input. */
export function foldScope(before: StoredScope, all: readonly ScopeChanges[]): StoredScope {
  const { counters, bankedTokens } = all.at(-1) ?? before;
  const allOf = <Part extends keyof ScopeChanges>(part: Part) => all.map((changes) => changes[part]);
  return {
    counters,
    bankedTokens,
    register: foldRegister(before.register, allOf("register")),
    nodes: foldRows(before.nodes, allOf("nodes"), byId),
    recent: foldRows(before.recent, allOf("recent"), byTurn),
    workers: foldRows(before.workers, allOf("workers"), byId),
    clusters: foldRows(before.clusters, allOf("clusters"), byId),
    accesses: foldRows(before.accesses, allOf("accesses"), byTurn),
  };
}

const byId = <Id>({ id }: { readonly id: Id }) => id;
const byTurn = ({ turn }: { readonly turn: TurnId }) => turn;

/** Sorted by key, as the parts of a scope's state expect. */
function foldRows<Key extends number, Row>(
  before: readonly Row[],
  all: readonly RowChanges<Key, Row>[],
  keyOf: (row: Row) => Key,
): Row[] {
  const rows = new Map(before.map((row) => [keyOf(row), row]));
  for (const { upserted, removed } of all) {
    for (const key of removed) rows.delete(key);
    for (const row of upserted) rows.set(keyOf(row), row);
  }
  return [...rows.values()].sort((a, b) => keyOf(a) - keyOf(b));
}

function foldRegister(before: StoredRegister, all: readonly RegisterChanges[]): StoredRegister {
  const forgotten = new Set(before.forgotten);
  const memories = new Map<MemoryId, Map<Label, MemoryVersion>>();
  const hold = (version: MemoryVersion) =>
    keptIn(memories, version.memoryId, () => new Map<Label, MemoryVersion>()).set(version.label, version);
  for (const version of before.versions) hold(version);
  for (const changes of all) {
    if (changes.removedBlocks.length > 0) {
      for (const [id, versions] of memories) {
        for (const label of changes.removedBlocks) versions.delete(label);
        if (hasNoText(versions.keys())) memories.delete(id);
      }
    }
    for (const id of changes.forgotten) {
      memories.delete(id);
      forgotten.add(id);
    }
    for (const version of changes.versions) hold(version);
  }
  const blocks = all.map(({ blocks: upserted, removedBlocks: removed }) => ({ upserted, removed }));
  return {
    blocks: foldRows(before.blocks, blocks, ({ label }) => label),
    versions: [...memories.values()].flatMap((versions) => [...versions.values()]),
    forgotten: [...forgotten],
  };
}
