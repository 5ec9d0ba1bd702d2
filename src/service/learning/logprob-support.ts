import { LruMap } from "../../core/index.js";

/** `top_logprobs` at most: OpenAI's limit, and vLLM's default. */
const MOST_LISTED = 20;
/** `top_logprobs` of engines with a lower limit. */
const FEW_LISTED = 5;
/** Milliseconds without probes after an engine gave no log probabilities for a model. */
const RETRY_AFTER_MS = 10 * 60_000;
/** Consecutive failed probes that count as no support. */
const STRIKES = 3;
/** Models remembered: clients choose the names, so the least recently used is forgotten. */
const MAX_MODELS = 256;

interface Known {
  readonly top: number;
  readonly strikes: number;
  /** Milliseconds of the clock; null: supported, as far as is known. */
  readonly offUntil: number | null;
}

const UNKNOWN: Known = { top: MOST_LISTED, strikes: 0, offUntil: null };

/** For which models an engine gives log probabilities, as far as one tenant's requests have shown. */
export class LogprobSupport {
  readonly #models = new LruMap<string, Known>(MAX_MODELS);

  /** @param clock milliseconds, monotonic */
  constructor(private readonly clock: () => number) {}

  /** `top_logprobs` to ask for; null: do not probe for now. */
  topFor(model: string): number | null {
    const { top, offUntil } = this.#of(model);
    return offUntil !== null && this.clock() < offUntil ? null : top;
  }

  /** A probe's answer had log probabilities. */
  gave(model: string): void {
    this.#models.set(model, { ...this.#of(model), strikes: 0, offUntil: null });
  }

  /** The engine refused them. False: perhaps for their number; ask for fewer. */
  refused(model: string): boolean {
    const known = this.#of(model);
    if (known.top > FEW_LISTED) {
      this.#models.set(model, { ...known, top: FEW_LISTED });
      return false;
    }
    this.off(model);
    return true;
  }

  /** No probes for a while. */
  off(model: string): void {
    this.#models.set(model, { ...UNKNOWN, offUntil: this.clock() + RETRY_AFTER_MS });
  }

  /** A probe failed, for any reason. True: no probes for a while. */
  strike(model: string): boolean {
    const known = this.#of(model);
    const strikes = known.strikes + 1;
    if (strikes >= STRIKES) this.off(model);
    else this.#models.set(model, { ...known, strikes });
    return strikes >= STRIKES;
  }

  #of(model: string): Known {
    return this.#models.get(model) ?? UNKNOWN;
  }
}
