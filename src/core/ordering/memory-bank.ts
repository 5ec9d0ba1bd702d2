/** Highest ratio that can be asked for. */
export const MAX_MEMORY_BUDGET_RATIO = 100;
/** Most that one prompt may hold, as a multiple of what its own ratio grants it. Figures: `docs/internals/ordering-trials.md`. */
const MOST_IN_ONE_PROMPT = 1.5;
/**
 * Most that the bank holds, as a multiple of what the prompt that pays in may carry by its own ratio. Figures:
 * `docs/internals/ordering-trials.md`.
 */
const MOST_BANKED = 20;

/** What a memory budget ratio leaves one prompt for blocks that were not retrieved, in tokens of their lines. */
export interface BankedAllowance {
  /** Most that this prompt may carry. */
  readonly tokens: number;
  /** What is in the bank together with what this prompt pays in: it and later prompts share it. */
  readonly banked: number;
}

/**
 * The memory budget of one scope's prompts together: those that ask with a ratio never send more memory tokens than the sum of ratio ×
 * retrieved, at any time. What a prompt leaves unused of its own share is banked, and later ones may use it. A single prompt holds at
 * most {@link MOST_IN_ONE_PROMPT} times its own share, so that a long thrift does not end in one huge prompt. Whole tokens, so that sums
 * are exact; the tokens of a turn are those that it adds to its prompt. What a turn holds back counts as sent.
 */
export class MemoryBank {
  #tokens: number;

  /** @param tokens what is stored: 0 in a scope where no prompt asked with a ratio */
  constructor(tokens: number) {
    this.#tokens = tokens;
  }

  /** Tokens that earlier prompts left unused; 0 or more. */
  get tokens(): number {
    return this.#tokens;
  }

  /** What a prompt may carry beside so many retrieved tokens. Reads only. */
  allowanceFor(ratio: number, retrievedTokens: number): BankedAllowance {
    const banked = ownShare(ratio, retrievedTokens) + this.#tokens;
    const most = ownShare(MOST_IN_ONE_PROMPT * ratio, retrievedTokens);
    return { tokens: Math.min(banked, most), banked };
  }

  /** Takes in a prompt that was composed: what it carried is drawn, and what it left of its own share is paid in. */
  settle(ratio: number, retrievedTokens: number, carriedTokens: number): void {
    const own = ownShare(ratio, retrievedTokens);
    const left = this.#tokens + own - carriedTokens;
    // A small prompt's bound is small; it must not cost what larger ones paid in.
    this.#tokens = left <= this.#tokens ? left : Math.max(this.#tokens, Math.min(left, MOST_BANKED * own));
  }
}

/** Tokens beside the retrieved ones that a ratio grants. */
function ownShare(ratio: number, retrievedTokens: number): number {
  return Math.floor(ratio * retrievedTokens) - retrievedTokens;
}
