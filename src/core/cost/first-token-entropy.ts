import { smallest } from "../text/lists.js";
/** More tokens than vocabularies in use have: what an engine does not list is at most spread over so many. */
export const VOCABULARY_TOKENS = 262_144;

/** Probability that rounding may add. */
const ROUNDING = 0.01;

/** Between what the entropy of a token's distribution lies, in nats. */
export interface EntropyBounds {
  readonly least: number;
  readonly most: number;
}

/**
 * The entropy of a token's distribution of which the likeliest tokens are known. What is not known of it, the mass outside the list, adds
 * least where it lies on tokens that are as likely as the last one listed, and most where it is spread over the whole vocabulary.
 * Null where these cannot be the probabilities of different tokens.
 *
 * @param logProbabilities natural logarithms, of different tokens, in any order; −9999 and the like count as never
 */
export function entropyBounds(
  logProbabilities: readonly number[],
  vocabularyTokens = VOCABULARY_TOKENS,
): EntropyBounds | null {
  const listed = logProbabilities.map(Math.exp);
  const sum = listed.reduce((all, p) => all + p, 0);
  // `!` for what is not a number.
  if (listed.length === 0 || !(sum > 0 && sum <= 1 + ROUNDING)) return null;
  const scale = Math.max(1, sum);
  const rest = Math.max(0, 1 - sum);
  const last = smallest(listed);
  const known = listed.reduce((nats, p) => nats + nat(p / scale), 0);
  const others = Math.max(1, vocabularyTokens - listed.length);
  // No unlisted token is likelier than the last one listed, so there are at least this many of them, if they share the rest.
  const least = last > 0 ? Math.min(others, Math.max(1, rest / last)) : others;
  return { least: Math.max(0, known + spread(rest, least)), most: Math.max(0, known + spread(rest, others)) };
}

/** What an outcome of this probability adds to an entropy. */
function nat(probability: number): number {
  return probability === 0 ? 0 : -probability * Math.log(probability);
}

/** What mass adds that lies evenly on so many outcomes. */
function spread(mass: number, outcomes: number): number {
  return mass === 0 ? 0 : -mass * Math.log(mass / outcomes);
}
