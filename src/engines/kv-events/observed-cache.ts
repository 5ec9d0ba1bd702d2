import {
  type BlockChain,
  type CacheHandle,
  type CacheLookup,
  type CachePrompt,
  type CacheReport,
  type ContextIndex,
  IN_FLIGHT_MS,
  LruMap,
  type NodeId,
  PredictedCache,
  type ResidencyModel,
  SCALED_ERROR,
} from "../../core/index.js";

/** Maximum prompts, each with a name per block. */
const MOST_OBSERVED = 1_024;

export interface TokenizedPrompt {
  readonly tokens: number;
  readonly chains: readonly BlockChain[];
}

interface ObservedPrompt {
  readonly prompt: CachePrompt;
  tokenized: TokenizedPrompt | null;
  isReported: boolean;
  /** Leading blocks that were held at the last look. */
  blocks: number;
  /** The most that ever were. */
  most: number;
  /** Where it may end in its scope's index: its leaf, and what losses left of its path. */
  readonly ends: Set<NodeId>;
}

/** An engine's cache as its KV events show it, exact to the block for tokenized prompts. Without events it is predicted. */
export class ObservedCache extends PredictedCache {
  readonly #observed = new LruMap<CacheHandle, ObservedPrompt>(MOST_OBSERVED);

  override admit(prompt: CachePrompt): void {
    super.admit(prompt);
    if (this.engine.residents.length === 0) return;
    const ends = new Set(prompt.end === undefined ? [] : [prompt.end.leaf]);
    this.#observed.set(prompt.handle, { prompt, tokenized: null, isReported: false, blocks: 0, most: 0, ends });
  }

  /** Records an admitted prompt as its engine sees it. */
  tokenized(handle: CacheHandle, tokenized: TokenizedPrompt): void {
    const observed = this.#observed.peek(handle);
    if (observed !== undefined) observed.tokenized = tokenized;
  }

  /** @param scopeId whose index the residency will be given */
  override lookup(stream: string, scopeId: number | null = null): CacheLookup {
    const predicted = super.lookup(stream);
    if (this.engine.residents.length === 0) return predicted;
    const newest = this.newestOf(stream);
    const observed = newest === null ? undefined : this.#observed.get(newest.handle);
    const blocks = observed === undefined ? null : this.#look(observed);
    const residentTokens =
      observed === undefined || blocks === null ? predicted.residentTokens : this.#tokensOf(observed, blocks);
    const { ttlMs, expire } = predicted.residency;
    const residency: ResidencyModel = {
      ttlMs,
      expire: (index, now) => {
        expire(index, now);
        this.#loseFrom(index, scopeId, now);
      },
    };
    return { ...predicted, residency, residentTokens };
  }

  /** Drops the stream's earlier prompts that this one begins with: what they lose, it loses. */
  override report(handle: CacheHandle, report: CacheReport | null, reportedAt: number): void {
    super.report(handle, report, reportedAt);
    const observed = this.#observed.peek(handle);
    if (observed === undefined) return;
    observed.isReported = true;
    this.#look(observed);
    for (const earlier of this.#observed.values())
      if (earlier !== observed && earlier.prompt.stream === observed.prompt.stream && beginsWith(observed, earlier))
        this.#observed.delete(earlier.prompt.handle);
  }

  override release(handle: CacheHandle): void {
    this.#observed.delete(handle);
    super.release(handle);
  }

  /**
   * Removes from a scope's index what the engine held and lost, unless it is computing a prompt of this scope: that may share the rest. One block
   * more counts as held: prompts that differ only within it have their own.
   */
  #loseFrom(index: ContextIndex, scopeId: number | null, now: number): void {
    const ofScope: ObservedPrompt[] = [];
    for (const observed of this.#observed.values()) {
      const { end, at } = observed.prompt;
      if (end?.scopeId !== scopeId) continue;
      if (!observed.isReported && now - at < IN_FLIGHT_MS) return;
      ofScope.push(observed);
    }
    for (const observed of ofScope) {
      const blocks = this.#isKnown(observed) ? this.#look(observed) : null;
      // Again at each look: the index may have been loaded without the loss.
      if (blocks === null || blocks === observed.most) continue;
      const tokens = (1 + SCALED_ERROR) * this.#tokensOf(observed, blocks + 1);
      for (const end of [...observed.ends]) {
        const left = index.lose(end, tokens);
        if (left !== null) observed.ends.add(left);
      }
    }
  }

  /** Whether no worker's events were lost: such a worker may hold the prompt. */
  #isKnown({ tokenized }: ObservedPrompt): boolean {
    const first = tokenized?.chains.slice(0, 1) ?? [];
    return this.engine.residents.every((worker) => worker.residentTokens(first) !== null);
  }

  /** Leading blocks that are held; null: unknown. Quick if none changed, since engines evict a prompt from its end. */
  #look(observed: ObservedPrompt): number | null {
    const { tokenized, blocks } = observed;
    const { blockTokens } = this.engine;
    if (tokenized === null || blockTokens === null) return null;
    const { chains, tokens } = tokenized;
    if (chains.length !== Math.floor(tokens / blockTokens)) return null;
    const isHeld = (at: number) => (this.engine.residentTokens(chains.slice(at, at + 1)) ?? 0) > 0;
    if (blocks > 0 && isHeld(blocks - 1) && (blocks === chains.length || !isHeld(blocks))) return blocks;
    const held = this.engine.residentTokens(chains);
    if (held === null) return null;
    observed.blocks = held / blockTokens;
    observed.most = Math.max(observed.most, observed.blocks);
    return observed.blocks;
  }

  /** In memprefix's tokens; infinite: all blocks. */
  #tokensOf({ prompt, tokenized }: ObservedPrompt, blocks: number): number {
    const { tokens, chains } = tokenized ?? { tokens: 1, chains: [] };
    if (chains.length > 0 && blocks >= chains.length) return Number.POSITIVE_INFINITY;
    const { total, beside = 0 } = prompt;
    const held = blocks * (this.engine.blockTokens ?? 0);
    return Math.max(0, Math.floor((held * (total + beside)) / tokens) - beside);
  }
}

function beginsWith({ tokenized }: ObservedPrompt, { tokenized: earlier }: ObservedPrompt): boolean {
  const last = earlier?.chains.at(-1);
  return earlier !== null && last !== undefined && tokenized?.chains[earlier.chains.length - 1] === last;
}
