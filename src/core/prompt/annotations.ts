import { forgesStructure } from "../escaping/escaping.js";
import type { Label } from "../text/ids.js";
import type { Annotation } from "./injection.js";

/** The wording of the annotations, one line each; `{labels}` is replaced by the labels, best first. */
export interface AnnotationWording {
  readonly order: string;
  readonly location: string;
}

/**
 * Short, because annotations are uncached tokens in every prompt (docs/internals/algorithms.md, "Annotations"). The paper's wording is
 * "Please read the context in the following priority order: … and answer the question."
 */
export const DEFAULT_WORDING: AnnotationWording = {
  order: "Most relevant first: {labels}.",
  location: "Also relevant, given earlier: {labels}.",
};

/** The problem with a template; null for none. A template must not look like a label, a tag or a continued line. */
export function wordingProblem(template: string): string | null {
  if (template.split("{labels}").length !== 2) return "must contain {labels} exactly once";
  if (template.length > 300) return "must be at most 300 characters";
  if (/[\p{Cc}\u2028\u2029]/u.test(template)) return "must be one line without control characters";
  // With labels first, the line would parse as a block.
  if (/^(?:[[<\s]|\{labels\})/.test(template)) return 'must not begin with {labels}, "[", "<" or white space';
  if (forgesStructure(template)) return "must not contain a label, a memories tag or a template token";
  return null;
}

/** Which annotations a caller wants, and their wording. */
export interface AnnotationSettings {
  readonly order: boolean;
  readonly location: boolean;
  /** Maximum labels in one annotation; the paper names all, which costs more than it gains at k = 100. */
  readonly topN: number;
  readonly wording: AnnotationWording;
}

export const DEFAULT_ANNOTATIONS: AnnotationSettings = {
  order: true,
  location: true,
  topN: 10,
  wording: DEFAULT_WORDING,
};

/** The relevance ranking, if the prompt order differs from it; empty otherwise. Carried blocks must not be in the lists. */
export function orderAnnotation(
  ranked: readonly Label[],
  placed: readonly Label[],
  settings: AnnotationSettings,
): Annotation[] {
  const moved = ranked.some((label, rank) => placed[rank] !== label);
  const labels = ranked.slice(0, settings.topN);
  if (!settings.order || !moved || labels.length === 0) return [];
  return [{ kind: "order", template: settings.wording.order, labels }];
}

/** The most relevant blocks that earlier turns of this prompt injected, in one line. */
export function locationAnnotation(givenEarlier: readonly Label[], settings: AnnotationSettings): Annotation[] {
  const labels = givenEarlier.slice(0, settings.topN);
  if (!settings.location || labels.length === 0) return [];
  return [{ kind: "location", template: settings.wording.location, labels }];
}
