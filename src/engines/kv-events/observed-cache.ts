import { SCALED_ERROR } from "../../core/cache/cache-report.js";
import {
  type BlockChain,
  type CacheHandle,
  type CacheLookup,
  type CachePrompt,
  type CacheReport,
  type ContextIndex,
  LruMap,
  PredictedCache,
  type ResidencyModel,
} from "../../core/index.js";

/** Each has some hundred blocks. */
const MOST_OBSERVED = 1_024;

export interface TokenizedPrompt {
  readonly tokens: number;
  readonly chains: readonly BlockChain[];
}

interface ObservedPrompt {
  readonly prompt: CachePrompt;
  tokenized: TokenizedPrompt | null;
  /** Leading tokens that the engine held when it was looked at last; infinite: all. */
  held: number;
}

/** An engine's cache as its KV events show it, exact to the block for tokenized prompts. Without events it is predicted. */
export class ObservedCache extends PredictedCache {
  readonly #observed = new LruMap<CacheHandle, ObservedPrompt>(MOST_OBSERVED);

  override admit(prompt: CachePrompt): void {
    super.admit(prompt);
    this.#observed.set(prompt.handle, { prompt, tokenized: null, held: 0 });
  }

  /** Records an admitted prompt as its engine sees it. The conversation's earlier prompts are parts of it. */
  tokenized(handle: CacheHandle, tokenized: TokenizedPrompt): void {
    const observed = this.#observed.peek(handle);
    if (observed === undefined) return;
    for (const { prompt, tokenized: before } of this.#observed.values()) {
      const last = before?.chains.at(-1);
      const isPart = last !== undefined && tokenized.chains[(before?.chains.length ?? 0) - 1] === last;
      if (isPart && prompt.stream === observed.prompt.stream && prompt.handle !== handle)
        this.#observed.delete(prompt.handle);
    }
    observed.tokenized = tokenized;
  }

  /** @param scope of which the context index loses what the engine lost */
  override lookup(stream: string, scope: string | null = null): CacheLookup {
    const predicted = super.lookup(stream);
    if (this.engine.residents.length === 0) return predicted;
    const newest = this.newestOf(stream);
    const observed = newest === null ? undefined : this.#observed.get(newest.handle);
    const held = observed === undefined ? null : this.#heldOf(observed);
    const { ttlMs, expire } = predicted.residency;
    const residency: ResidencyModel = {
      ttlMs,
      expire: (index, now) => {
        expire(index, now);
        this.#loseFrom(index, scope);
      },
    };
    return { ...predicted, residency, residentTokens: held ?? predicted.residentTokens };
  }

  override report(handle: CacheHandle, report: CacheReport | null, reportedAt: number): void {
    super.report(handle, report, reportedAt);
    const observed = this.#observed.peek(handle);
    if (observed !== undefined) observed.held = Math.max(observed.held, this.#heldOf(observed) ?? 0);
  }

  override release(handle: CacheHandle): void {
    this.#observed.delete(handle);
    super.release(handle);
  }

  /**
   * What the engine held and lost leaves a scope's index. A prompt that is computed now was not held yet. A prompt that parts from this one within
   * the first block that is missing may hold its own.
   */
  #loseFrom(index: ContextIndex, scope: string | null): void {
    for (const observed of this.#observed.values()) {
      const { end } = observed.prompt;
      const held = end?.scope === scope ? this.#heldOf(observed) : null;
      if (end === undefined || held === null) continue;
      if (held < observed.held) index.lose(end.leaf, (1 + SCALED_ERROR) * (this.#heldOf(observed, 1) ?? held));
      observed.held = held;
    }
  }

  /** In tokens of memprefix's counter; infinite: all blocks. Null: unknown. @param more blocks beyond what is held */
  #heldOf({ prompt, tokenized }: ObservedPrompt, more = 0): number | null {
    if (tokenized === null || tokenized.tokens === 0) return null;
    const { chains, tokens } = tokenized;
    const { blockTokens } = this.engine;
    const held = this.engine.residentTokens(chains);
    if (held === null) return null;
    const isWhole = held > 0 && held === chains.length * (blockTokens ?? 0);
    if (isWhole) return Number.POSITIVE_INFINITY;
    return Math.floor(((held + more * (blockTokens ?? 0)) * prompt.total) / tokens);
  }
}
