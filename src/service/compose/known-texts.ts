import { batchKnowledge, type Digest, type Label, type ScopeState } from "../../core/index.js";

/** What a scope knows for planning a batch, with blocks by the digests of their texts. See `KeyKnowledge` of the core. */
export interface KnownTexts {
  readonly cached: readonly (readonly Digest[])[];
  readonly recent: readonly (readonly Digest[])[];
}

/** @param texts each request's memories; a text that the scope has no block of cannot be cached */
export function knownTexts(
  state: ScopeState,
  input: Parameters<typeof batchKnowledge>[1],
  texts: readonly (readonly Digest[])[],
): KnownTexts {
  const { register } = state;
  const digestOf = new Map<Label, Digest>();
  const wanted = texts.map((ofRequest) => {
    const labels = new Set<Label>();
    for (const text of ofRequest) {
      const label = register.withText(text);
      if (label === undefined) continue;
      labels.add(label);
      digestOf.set(label, text);
    }
    return labels;
  });
  const { cached, recent } = batchKnowledge(state, input, wanted);
  const textsOf = (labels: readonly Label[]) => labels.flatMap((label) => digestOf.get(label) ?? []);
  return { cached: cached.map(textsOf), recent: recent.map(textsOf) };
}
