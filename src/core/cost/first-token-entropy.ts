import { smallest } from "../text/lists.js";
/** Upper bound of real vocabularies: unlisted probability mass is spread over at most this many tokens. */
export const VOCABULARY_TOKENS = 262_144;

/** Tolerance for rounded probabilities, above a sum of 1. */
const ROUNDING = 0.01;

/** Bounds of the entropy of a token's distribution, in nats. */
export interface EntropyBounds {
  readonly least: number;
  readonly most: number;
}

/**
 * Bounds of the entropy of a token's distribution of which only the likeliest tokens are known. The unlisted mass adds least if it lies on
 * tokens as likely as the last listed one, and most if it is spread evenly over the vocabulary. Null if these cannot be probabilities of
 * different tokens.
 *
 * @param logProbabilities natural logarithms, of different tokens, in any order; −9999 and the like count as probability 0
 */
export function entropyBounds(
  logProbabilities: readonly number[],
  vocabularyTokens = VOCABULARY_TOKENS,
): EntropyBounds | null {
  const listed = logProbabilities.map(Math.exp);
  const sum = listed.reduce((all, p) => all + p, 0);
  // Negated, so that NaN is rejected.
  if (listed.length === 0 || !(sum > 0 && sum <= 1 + ROUNDING)) return null;
  const scale = Math.max(1, sum);
  const rest = Math.max(0, 1 - sum);
  const last = smallest(listed);
  const known = listed.reduce((nats, p) => nats + nat(p / scale), 0);
  const others = Math.max(1, vocabularyTokens - listed.length);
  // No unlisted token is likelier than the last listed one, so at least this many share the rest.
  const least = last > 0 ? Math.min(others, Math.max(1, rest / last)) : others;
  return { least: Math.max(0, known + spread(rest, least)), most: Math.max(0, known + spread(rest, others)) };
}

/** Contribution of an outcome with this probability to the entropy. */
function nat(probability: number): number {
  return probability === 0 ? 0 : -probability * Math.log(probability);
}

/** Contribution of mass spread evenly over so many outcomes. */
function spread(mass: number, outcomes: number): number {
  return mass === 0 ? 0 : -mass * Math.log(mass / outcomes);
}
