import type { ContextIndex } from "./context-index.js";
import type { Digest, Label } from "./ids.js";

/** The policies that a caller can name. */
export const POLICY_NAMES = ["prefix-exact"] as const;
export type PolicyName = (typeof POLICY_NAMES)[number];

/** The blocks of one request that are not in its prompt yet. */
export interface OrderingRequest {
  /** Digest of everything that will stand before the blocks; only what was served behind the same bytes can be reused. */
  readonly anchor: Digest;
  /** Distinct blocks in relevance order, best first, with the tokens of their lines. */
  readonly retrieved: readonly { readonly label: Label; readonly tokens: number }[];
}

/** An order for the blocks, and what of it an engine should hold. */
export interface Ordering {
  /** Every retrieved block exactly once. */
  readonly labels: readonly Label[];
  /** How many of them, from the front, should be cached. */
  readonly cachedBlocks: number;
  readonly cachedTokens: number;
  /** Node of the index that was matched, as child positions; empty for none. */
  readonly searchPath: readonly number[];
}

/**
 * Orders the blocks of a request by what the context index says is cached. Pure: it reads the index and leaves it as it is.
 * Every policy passes `test/core/ordering.suite.ts`.
 */
export interface OrderingPolicy {
  readonly name: PolicyName;
  order(request: OrderingRequest, index: ContextIndex): Ordering;
}
