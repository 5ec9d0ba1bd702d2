import type { Annotation, InjectedBlock, Injection, Label } from "../../core/index.js";

/** A label; or a label, and the labels that it replaces. */
type PackedBlock = number | readonly [number, readonly Label[]];

/** An injection as it is stored: short arrays, as at k = 100 it is much of what a compose writes. */
export interface PackedInjection {
  readonly b: readonly PackedBlock[];
  readonly a: readonly Annotation[];
}

const NO_LABELS: readonly Label[] = [];

export function packInjection({ blocks, annotations }: Injection): PackedInjection {
  const packed = blocks.map(({ label, replaces }): PackedBlock => (replaces.length === 0 ? label : [label, replaces]));
  return { b: packed, a: annotations };
}

export function unpackInjection({ b, a }: PackedInjection): Injection {
  const blocks = b.map((block): InjectedBlock => {
    const [label, replaces] = typeof block === "number" ? [block, NO_LABELS] : block;
    return { label: label as Label, replaces };
  });
  return { blocks, annotations: a };
}
