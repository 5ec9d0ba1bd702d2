import { BlockRegister } from "../blocks/block-register.js";
import type { MemoryVersion, RegisterChanges, StoredBlock, StoredRegister } from "../blocks/context-block.js";
import { hasNoText } from "../blocks/memory-versions.js";
import { ContextIndex, type IndexNode } from "../cache/context-index.js";
import type { Conversation } from "../conversation/conversation.js";
import { CountedHeads } from "../conversation/replay.js";
import { type RecentRetrieval, RecentRetrievals } from "../ordering/ordering.js";
import type { Access } from "../published/access-frequency.js";
import type { ClusterNode } from "../published/cluster-tree.js";
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
  readonly nextTurn: number;
  /** Requests composed so far: the scope's logical clock. */
  readonly requests: number;
}

export const FIRST_COUNTERS: ScopeCounters = { nextLabel: 1, nextNode: 1, nextTurn: 1, requests: 0 };

/** Without conversations, which load one by one. */
export interface StoredScope {
  readonly counters: ScopeCounters;
  /** Balance of the memory bank. */
  readonly bankedTokens: number;
  readonly register: StoredRegister;
  readonly nodes: readonly IndexNode[];
  readonly recent: readonly RecentRetrieval[];
  readonly workers: readonly WorkerRow[];
  readonly published: PublishedRows;
}

export const EMPTY_SCOPE: StoredScope = {
  counters: FIRST_COUNTERS,
  bankedTokens: 0,
  register: { blocks: [], versions: [], forgotten: [] },
  nodes: [],
  recent: [],
  workers: [],
  published: NO_PUBLISHED_ROWS,
};

/** What composes changed, to be stored in one transaction. */
export interface ScopeChanges {
  readonly counters: ScopeCounters;
  readonly bankedTokens: number;
  readonly register: RegisterChanges;
  readonly index: RowChanges<NodeId, IndexNode>;
  readonly recent: RowChanges<TurnId, RecentRetrieval>;
  readonly workers: RowChanges<number, WorkerRow>;
  readonly published: PublishedChanges;
}

export interface ScopeBounds {
  /** Of the context index and of the cluster tree; LRU leaves are evicted from memory and disk. */
  readonly maxIndexNodes: number;
  /** The LRU conversation is unloaded, not deleted. */
  readonly maxLoadedConversations: number;
}

export const DEFAULT_SCOPE_BOUNDS: ScopeBounds = { maxIndexNodes: 20_000, maxLoadedConversations: 32 };

/** The working state of one scope. After a change, store what {@link drain} returns, or discard the state. */
export class ScopeState implements WithPublished {
  readonly register: BlockRegister;
  readonly index: ContextIndex;
  readonly recent: RecentRetrievals;
  readonly published: PublishedKnowledge;
  readonly workers: WorkerBlocks;
  /** Not stored. */
  readonly heads = new CountedHeads();
  /** Tokens that prompts with a memory budget ratio left unused. */
  bankedTokens: number;
  readonly #conversations: LruMap<ConversationId, Conversation>;
  #nextTurn: number;
  #requests: number;

  constructor(
    stored: StoredScope,
    countTokens: TokenCounter,
    bounds: ScopeBounds = DEFAULT_SCOPE_BOUNDS,
    untrustedOrigins?: ReadonlySet<string>,
  ) {
    this.register = new BlockRegister(stored.register, stored.counters.nextLabel, countTokens, untrustedOrigins);
    const blockTokens = (label: Label) => this.register.get(label)?.tokens ?? 0;
    const { maxIndexNodes } = bounds;
    this.published = new PublishedKnowledge(stored.published, maxIndexNodes);
    this.index = new ContextIndex(stored.nodes, stored.counters.nextNode, maxIndexNodes, blockTokens, this.published);
    this.recent = new RecentRetrievals(stored.recent);
    this.workers = new WorkerBlocks(stored.workers);
    this.bankedTokens = stored.bankedTokens;
    this.#conversations = new LruMap(bounds.maxLoadedConversations);
    this.#nextTurn = stored.counters.nextTurn;
    this.#requests = stored.counters.requests;
  }

  get requests(): number {
    return this.#requests;
  }

  tick(): number {
    return ++this.#requests;
  }

  newTurnId(): TurnId {
    return this.#nextTurn++ as TurnId;
  }

  /** Records that a batch worker processed these texts. */
  rememberWorker(name: string, texts: readonly Digest[]): void {
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
      published: this.published.stored(),
    };
  }

  drain(): ScopeChanges {
    return {
      counters: this.#counters(),
      bankedTokens: this.bankedTokens,
      register: this.register.drain(),
      index: this.index.drain(),
      recent: this.recent.drain(),
      workers: this.workers.drain(),
      published: this.published.drain(),
    };
  }

  #counters(): ScopeCounters {
    return {
      nextLabel: this.register.nextLabel,
      nextNode: this.index.nextId,
      nextTurn: this.#nextTurn,
      requests: this.#requests,
    };
  }
}

class FoldedRows<Key extends number, Row> {
  readonly #rows = new Map<Key, Row>();

  constructor(
    rows: readonly Row[],
    private readonly keyOf: (row: Row) => Key,
  ) {
    for (const row of rows) this.#rows.set(keyOf(row), row);
  }

  take({ upserted, removed }: RowChanges<Key, Row>): void {
    for (const key of removed) this.#rows.delete(key);
    for (const row of upserted) this.#rows.set(this.keyOf(row), row);
  }

  /** Sorted by key, as the parts of a scope's state expect. */
  rows(): Row[] {
    return [...this.#rows.values()].sort((a, b) => this.keyOf(a) - this.keyOf(b));
  }
}

class FoldedRegister {
  readonly #blocks: FoldedRows<Label, StoredBlock>;
  readonly #versions = new Map<MemoryId, Map<Label, MemoryVersion>>();
  /** Memories that have or had each block's text, or more. */
  readonly #holders = new Map<Label, Set<MemoryId>>();
  readonly #forgotten: Set<MemoryId>;

  constructor({ blocks, versions, forgotten }: StoredRegister) {
    this.#blocks = new FoldedRows(blocks, ({ label }) => label);
    this.#forgotten = new Set(forgotten);
    for (const version of versions) this.#hold(version);
  }

  take({ blocks, versions, removedBlocks, forgotten }: RegisterChanges): void {
    this.#blocks.take({ upserted: blocks, removed: removedBlocks });
    for (const label of removedBlocks) this.#drop(label);
    for (const id of forgotten) {
      this.#versions.delete(id);
      this.#forgotten.add(id);
    }
    for (const version of versions) this.#hold(version);
  }

  stored(): StoredRegister {
    const versions = [...this.#versions.values()].flatMap((all) => [...all.values()]);
    return { blocks: this.#blocks.rows(), versions, forgotten: [...this.#forgotten] };
  }

  #hold(version: MemoryVersion): void {
    const { memoryId, label } = version;
    keptIn(this.#versions, memoryId, () => new Map()).set(label, version);
    keptIn(this.#holders, label, () => new Set()).add(memoryId);
  }

  #drop(label: Label): void {
    for (const id of this.#holders.get(label) ?? []) {
      const versions = this.#versions.get(id);
      versions?.delete(label);
      if (versions !== undefined && hasNoText(versions)) this.#versions.delete(id);
    }
    this.#holders.delete(label);
  }
}

/** Applies changes to a stored state, as a store does for the next load. O(state + all changes); shares rows with its input. */
export class ScopeFolding {
  readonly #register: FoldedRegister;
  readonly #nodes: FoldedRows<number, StoredScope["nodes"][number]>;
  readonly #recent: FoldedRows<number, StoredScope["recent"][number]>;
  readonly #workers: FoldedRows<number, StoredScope["workers"][number]>;
  readonly #clusters: FoldedRows<NodeId, ClusterNode>;
  readonly #accesses: FoldedRows<TurnId, Access>;
  #counts: Pick<StoredScope, "counters" | "bankedTokens">;

  constructor(before: StoredScope) {
    const { counters, bankedTokens, register, nodes, recent, workers, published } = before;
    this.#counts = { counters, bankedTokens };
    this.#register = new FoldedRegister(register);
    this.#nodes = new FoldedRows(nodes, ({ id }) => id);
    this.#recent = new FoldedRows(recent, ({ turn }) => turn);
    this.#workers = new FoldedRows(workers, ({ id }) => id);
    this.#clusters = new FoldedRows(published.clusters, ({ id }) => id);
    this.#accesses = new FoldedRows(published.accesses, ({ turn }) => turn);
  }

  take({ counters, bankedTokens, register, index, recent, workers, published }: ScopeChanges): void {
    this.#counts = { counters, bankedTokens };
    this.#register.take(register);
    this.#nodes.take(index);
    this.#recent.take(recent);
    this.#workers.take(workers);
    this.#clusters.take(published.clusters);
    this.#accesses.take(published.accesses);
  }

  stored(): StoredScope {
    return {
      ...this.#counts,
      register: this.#register.stored(),
      nodes: this.#nodes.rows(),
      recent: this.#recent.rows(),
      workers: this.#workers.rows(),
      published: { clusters: this.#clusters.rows(), accesses: this.#accesses.rows() },
    };
  }
}
