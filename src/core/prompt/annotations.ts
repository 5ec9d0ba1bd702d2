import { forgesStructure } from "../escaping/escaping.js";
import type { Label } from "../text/ids.js";
import type { Annotation } from "./injection.js";

/** The sentences of the annotations; `{labels}` stands for the labels, best first. One line each. */
export interface AnnotationWording {
  readonly order: string;
  readonly location: string;
}

/**
 * Short on purpose: annotations are uncached tokens in every prompt (docs/internals/algorithms.md, "Annotations"). The paper's own wording
 * is "Please read the context in the following priority order: … and answer the question."
 */
export const DEFAULT_WORDING: AnnotationWording = {
  order: "Most relevant first: {labels}.",
  location: "Also relevant, given earlier: {labels}.",
};

/** What is wrong with a template, or null. A template may not look like a label, a tag or a continued line. */
export function wordingProblem(template: string): string | null {
  if (template.split("{labels}").length !== 2) return "must contain {labels} exactly once";
  if (template.length > 300) return "must be at most 300 characters";
  if (/[\p{Cc}\u2028\u2029]/u.test(template)) return "must be one line without control characters";
  // With the labels in front the line would read as a block's.
  if (/^(?:[[<\s]|\{labels\})/.test(template)) return 'must not begin with {labels}, "[", "<" or white space';
  if (forgesStructure(template)) return "must not contain a label, a memories tag or a template token";
  return null;
}

/** Which annotations a caller wants, and how many labels each may name. */
export interface AnnotationSettings {
  readonly order: boolean;
  readonly location: boolean;
  /** Most labels that one annotation names; the paper names all, which costs more than it gives at k = 100. */
  readonly topN: number;
  readonly wording: AnnotationWording;
}

export const DEFAULT_ANNOTATIONS: AnnotationSettings = {
  order: true,
  location: true,
  topN: 10,
  wording: DEFAULT_WORDING,
};

/** The ranking, where blocks do not stand in it any more; nothing where nothing moved. Carried blocks never come in here. */
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

/** The most relevant of what was given earlier in this prompt, on one line. */
export function locationAnnotation(givenEarlier: readonly Label[], settings: AnnotationSettings): Annotation[] {
  const labels = givenEarlier.slice(0, settings.topN);
  if (!settings.location || labels.length === 0) return [];
  return [{ kind: "location", template: settings.wording.location, labels }];
}
