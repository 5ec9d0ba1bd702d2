import { LruMap } from "../../core/index.js";

/** Tokens that OpenAI's API lists at most, and vLLM unless it is told otherwise … */
const MOST_LISTED = 20;
/** … and what engines list that have a lower limit. */
const FEW_LISTED = 5;
/** How long an engine that gives no log probabilities for a model is not asked for them again. */
const RETRY_AFTER_MS = 10 * 60_000;
/** So many tries in a row that came to nothing count as an engine that gives none. */
const STRIKES = 3;
/** Clients name models as they like; those asked for longest ago are asked for anew. */
const MAX_MODELS = 256;

interface Known {
  readonly top: number;
  readonly strikes: number;
  /** Milliseconds of the clock; null: it may be asked. */
  readonly offUntil: number | null;
}

const UNKNOWN: Known = { top: MOST_LISTED, strikes: 0, offUntil: null };

/** For which models an engine gives log probabilities, as far as one tenant's requests have shown. */
export class LogprobSupport {
  readonly #models = new LruMap<string, Known>(MAX_MODELS);

  /** @param clock milliseconds, monotonic */
  constructor(private readonly clock: () => number) {}

  /** How many tokens to ask for; null: none, for now. */
  topFor(model: string): number | null {
    const { top, offUntil } = this.#of(model);
    return offUntil !== null && this.clock() < offUntil ? null : top;
  }

  /** It gave them. */
  gave(model: string): void {
    this.#models.set(model, { ...this.#of(model), strikes: 0, offUntil: null });
  }

  /** It gave none, or refused them. False: it may have been for their number, and is to be asked for fewer. */
  refused(model: string): boolean {
    const known = this.#of(model);
    if (known.top > FEW_LISTED) {
      this.#models.set(model, { ...known, top: FEW_LISTED });
      return false;
    }
    this.off(model);
    return true;
  }

  /** It is not asked again for a while. */
  off(model: string): void {
    this.#models.set(model, { ...UNKNOWN, offUntil: this.clock() + RETRY_AFTER_MS });
  }

  /** A try came to nothing, for whatever reason. True: it is not asked again for a while. */
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
