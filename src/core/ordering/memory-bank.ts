/** Maximum ratio of a request. */
export const MAX_MEMORY_BUDGET_RATIO = 100;
/** Maximum of one prompt, as a multiple of its own share. Figures: `docs/internals/ordering-trials.md`. */
const MAX_PER_PROMPT = 1.5;
/** Maximum of the bank, as a multiple of the own share of the prompt that pays in. Figures: `docs/internals/ordering-trials.md`. */
const MAX_BANKED = 20;

/** What a memory budget ratio allows one prompt for carried blocks, in tokens of their lines. */
export interface BankedAllowance {
  /** Maximum that this prompt may carry. */
  readonly tokens: number;
  /** The bank's balance plus this prompt's own share, which it shares with later prompts. */
  readonly banked: number;
}

/**
 * The memory budget that all prompts of a scope share: prompts with a ratio never send more memory tokens in total than the sum of ratio ×
 * retrieved, at any time. What a prompt leaves of its own share is banked for later ones. One prompt carries at most {@link MAX_PER_PROMPT}
 * times its own share, so that savings are not spent on one huge prompt. Whole tokens, so that sums are exact. A turn counts the tokens
 * that it adds to its prompt; blocks that it holds back count as sent.
 */
export class MemoryBank {
  #tokens: number;

  /** @param tokens the stored balance; 0 in a scope without prompts with a ratio */
  constructor(tokens: number) {
    this.#tokens = tokens;
  }

  /** The balance: tokens that earlier prompts left unused; 0 or more. */
  get tokens(): number {
    return this.#tokens;
  }

  /** What a prompt with so many retrieved tokens may carry. Read-only. */
  allowanceFor(ratio: number, retrievedTokens: number): BankedAllowance {
    const banked = ownShare(ratio, retrievedTokens) + this.#tokens;
    const most = ownShare(MAX_PER_PROMPT * ratio, retrievedTokens);
    return { tokens: Math.min(banked, most), banked };
  }

  /** Books a composed prompt: withdraws what it carried, deposits what it left of its own share. */
  settle(ratio: number, retrievedTokens: number, carriedTokens: number): void {
    const own = ownShare(ratio, retrievedTokens);
    const left = this.#tokens + own - carriedTokens;
    // The bound of a small prompt must not reduce what larger ones deposited.
    this.#tokens = left <= this.#tokens ? left : Math.max(this.#tokens, Math.min(left, MAX_BANKED * own));
  }
}

/** A prompt's own share: tokens beside the retrieved ones that its ratio allows. */
function ownShare(ratio: number, retrievedTokens: number): number {
  return Math.floor(ratio * retrievedTokens) - retrievedTokens;
}
