import { LruMap, type UserId } from "../../core/index.js";

/** Whose prompts were counted, and for which model. */
export interface RatioKey {
  readonly userId: UserId;
  /** As its client names it; empty where it is not known. */
  readonly model: string;
}

/** Tokens of one prompt: by memstem's counter, and as its engine reported. */
interface CountedPrompt {
  readonly estimated: number;
  readonly reported: number;
  /** When it was reported, in milliseconds since the epoch. */
  readonly at: number;
}

/** Most (user, model) pairs of one tenant. */
const MOST_KNOWN = 1_000;
/** Newest prompts of each that count. */
const KEPT_PROMPTS = 8;
/** A report expires: another model may be served under the same name. */
const KNOWN_FOR_MS = 60 * 60 * 1_000;
/** Prompts shorter than this share of a limit do not count for it: what a template adds once weighs too much in them. */
const SHORTEST_SHARE = 1 / 8;
/** Fewer prompts do not raise a limit: the next text's ratio may be another. */
const ENOUGH_TO_RAISE = 4;
/** A ratio beyond these is no tokenizer's. */
const [LEAST, MOST] = [0.5, 4];

/**
 * How engines count the tokens of one tenant's prompts, relative to memstem's counter. In memory only. Kept per user and model: a client
 * that reports wrong counts affects its own user's prompts only.
 */
export class TokenRatios {
  readonly #prompts = new LruMap<string, readonly CountedPrompt[]>(MOST_KNOWN);

  /** @param now milliseconds since the epoch */
  constructor(private readonly now: () => number) {}

  /** Takes the tokens of a prompt that an engine reported. */
  take(of: RatioKey, { estimated, reported }: { readonly estimated: number; readonly reported: number }): void {
    if (estimated <= 0 || reported <= 0) return;
    const key = keyOf(of);
    const counted = { estimated, reported, at: this.now() };
    this.#prompts.set(key, [...(this.#prompts.get(key) ?? []).slice(1 - KEPT_PROMPTS), counted]);
  }

  /**
   * The engine's tokens of one of memstem's in prompts of about `limit` tokens: the largest ratio of the newest prompts, because a limit
   * holds for each. 1 where nothing is known.
   */
  ratioFor(of: RatioKey, limit: number): number {
    const counted = this.#newest(of).filter(({ estimated }) => estimated >= SHORTEST_SHARE * limit);
    if (counted.length === 0) return 1;
    // One more: a longer prompt's tokens may be rounded up where these were rounded down.
    const largest = counted.reduce((most, { estimated, reported }) => Math.max(most, (reported + 1) / estimated), 0);
    return Math.min(MOST, Math.max(counted.length < ENOUGH_TO_RAISE ? 1 : LEAST, largest));
  }

  /** The engine's tokens of one of memstem's over the newest prompts. 1 where nothing is known. */
  meanOf(of: RatioKey): number {
    const counted = this.#newest(of);
    const sum = (tokens: (prompt: CountedPrompt) => number) => counted.reduce((all, each) => all + tokens(each), 0);
    const estimated = sum((prompt) => prompt.estimated);
    if (estimated === 0) return 1;
    return Math.min(MOST, Math.max(LEAST, sum((prompt) => prompt.reported) / estimated));
  }

  #newest(of: RatioKey): readonly CountedPrompt[] {
    const since = this.now() - KNOWN_FOR_MS;
    return (this.#prompts.get(keyOf(of)) ?? []).filter(({ at }) => at > since);
  }
}

function keyOf({ userId, model }: RatioKey): string {
  return JSON.stringify([userId, model]);
}
