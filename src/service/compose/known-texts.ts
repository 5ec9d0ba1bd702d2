import { batchKnowledge, type Digest, type Label, type ScopeState } from "../../core/index.js";

/** What a scope knows for planning a batch, with blocks by the digests of their texts. */
export interface KnownTexts {
  /** What should be cached, least recently used first. */
  readonly cached: readonly KnownSequence[];
  /** What recent requests asked for, oldest first. */
  readonly recent: readonly (readonly Digest[])[];
}

/** A sequence of blocks that should be cached, as far as one of the asked requests can use it. */
export interface KnownSequence {
  readonly texts: readonly Digest[];
  /** The scope's request counter at the last use. */
  readonly lastUsed: number;
}

/** @param texts each request's memories; a text that the scope has no block of cannot be cached */
export function knownTexts(
  state: ScopeState,
  input: Parameters<typeof batchKnowledge>[1],
  texts: readonly (readonly Digest[])[],
): KnownTexts {
  const { register } = state;
  const wanted = texts.map((ofRequest) => new Set(ofRequest.flatMap((text) => register.withText(text) ?? [])));
  const { cached, recent } = batchKnowledge(state, input, wanted);
  const textsOf = (labels: Iterable<Label>) =>
    [...labels].map((label) => register.get(label)?.textDigest).filter((text) => text !== undefined);
  return {
    cached: cached.map(({ labels, lastUsed }) => ({ texts: textsOf(labels), lastUsed })),
    recent: recent.map(textsOf),
  };
}
