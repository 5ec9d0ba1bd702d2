import type { Label } from "../text/ids.js";

/** A block as one turn put it into the prompt. */
export interface InjectedBlock {
  readonly label: Label;
  /** Labels in the same prompt that this block supersedes (an updated memory). */
  readonly replaces: readonly Label[];
}

/** One line after the blocks of a section. */
export type Annotation =
  /** The relevance ranking, best first, because blocks were reordered (docs/internals/algorithms.md, "Annotations"). */
  | { readonly kind: "order"; readonly template: string; readonly labels: readonly Label[] }
  /** Retrieved blocks that are earlier in this prompt, best first (Alg. 3). */
  | { readonly kind: "location"; readonly template: string; readonly labels: readonly Label[] }
  /** A memory's current text became, perhaps again, one that this prompt already contains. */
  | { readonly kind: "restored"; readonly label: Label; readonly replaces: readonly Label[] }
  /** Blocks of this prompt whose memories no longer hold, and which no other text replaces. */
  | { readonly kind: "withdrawn"; readonly labels: readonly Label[] };

/**
 * What one turn put into the prompt, as labels: texts are stored once, in the blocks. Rendering is a pure function, so replay is
 * byte-exact, and forgetting a block removes its text everywhere.
 */
export interface Injection {
  readonly blocks: readonly InjectedBlock[];
  readonly annotations: readonly Annotation[];
}

export const NOTHING_INJECTED: Injection = { blocks: [], annotations: [] };

export function isEmptyInjection(injection: Injection): boolean {
  return injection.blocks.length === 0 && injection.annotations.length === 0;
}

/** Every label that occurs in the injection, in any role. */
export function labelsIn(injection: Injection): ReadonlySet<Label> {
  const labels = new Set<Label>();
  for (const block of injection.blocks) {
    labels.add(block.label);
    for (const label of block.replaces) labels.add(label);
  }
  for (const annotation of injection.annotations) {
    if (annotation.kind === "restored") labels.add(annotation.label);
    for (const label of annotation.kind === "restored" ? annotation.replaces : annotation.labels) labels.add(label);
  }
  return labels;
}

/** The injection without some labels: without their blocks, references to them, and annotations that would be empty. */
export function withoutLabels(injection: Injection, forgotten: ReadonlySet<Label>): Injection {
  const keep = (labels: readonly Label[]) => labels.filter((label) => !forgotten.has(label));
  const blocks = injection.blocks
    .filter((block) => !forgotten.has(block.label))
    .map((block) => ({ ...block, replaces: keep(block.replaces) }));
  const annotations = injection.annotations.flatMap((annotation): Annotation[] => {
    if (annotation.kind === "restored") {
      return forgotten.has(annotation.label) ? [] : [{ ...annotation, replaces: keep(annotation.replaces) }];
    }
    const labels = keep(annotation.labels);
    return labels.length === 0 ? [] : [{ ...annotation, labels }];
  });
  return { blocks, annotations };
}
