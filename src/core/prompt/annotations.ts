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
  // With labels or a number first, the line would parse as a block.
  if (/^(?:[[<\s]|\{labels\})/.test(template)) return 'must not begin with {labels}, "[", "<" or white space';
  if (/^(?:\d+|-) /.test(template)) return "must not begin with a number or a hyphen";
  if (forgesStructure(template)) return "must not contain a label, a memories tag or a template token";
  return null;
}

/** Which annotations a caller wants, and their wording. */
export interface AnnotationSettings {
  /** The relevance ranking. */
  readonly order: boolean;
  /** A line of their own for blocks that were given earlier, as in the paper; the ranking then has this turn's only. */
  readonly location: boolean;
  /** How many labels one annotation names. */
  readonly topN: TopN;
  readonly wording: AnnotationWording;
}

/** Maximum labels of an annotation: a number, a share of the retrieved blocks between 0 and 1, or all; `auto`: {@link autoTopN}. */
export type TopN = number | "all" | "auto";

export const DEFAULT_ANNOTATIONS: AnnotationSettings = {
  order: true,
  location: false,
  topN: "auto",
  wording: DEFAULT_WORDING,
};

/** Whether a caller wants labels to be named: in lines of its own wording, so many of them, or of earlier turns. */
export function wantsLabels({ location, topN, wording }: AnnotationSettings): boolean {
  return location || topN !== DEFAULT_ANNOTATIONS.topN || wording.order !== DEFAULT_WORDING.order;
}

/**
 * The retrieved blocks that a prompt has, by where their texts are. Carried blocks must not be in the lists.
 */
export interface RankedBlocks {
  /** All of them, best first. */
  readonly ranked: readonly Label[];
  /** Those that stand earlier in the prompt. */
  readonly earlier: ReadonlySet<Label>;
  /** Those of this turn, in prompt order. */
  readonly placed: readonly Label[];
}

/**
 * The annotations of a turn: the relevance ranking of all its blocks, wherever they stand, if the prompt's order is another one or some stand
 * earlier. A block's rank is lost nowhere, in one line (docs/internals/algorithms.md, "Annotations").
 */
export function rankingAnnotations(blocks: RankedBlocks, settings: AnnotationSettings): Annotation[] {
  if (settings.location) return separateAnnotations(blocks, settings);
  const { ranked, earlier, placed } = blocks;
  const moved = earlier.size > 0 || ranked.some((label, rank) => placed[rank] !== label);
  return settings.order && moved ? annotation("order", ranked, settings) : [];
}

/**
 * The ranking of blocks without labels: the most relevant one again, where another stands first.
 *
 * @param ranked best first
 * @param placed in prompt order, carried ones included
 */
export function bestAgain(
  ranked: readonly Label[],
  placed: readonly Label[],
  { order }: AnnotationSettings,
): Annotation[] {
  const [best] = ranked;
  return order && best !== undefined && placed[0] !== best ? [{ kind: "best", labels: [best] }] : [];
}

/** The paper's two: a ranking of this turn's blocks, and a reference to the earlier ones (Alg. 3). */
function separateAnnotations({ ranked, earlier, placed }: RankedBlocks, settings: AnnotationSettings): Annotation[] {
  const fresh = ranked.filter((label) => !earlier.has(label));
  const moved = fresh.some((label, rank) => placed[rank] !== label);
  return [
    ...(settings.order && moved ? annotation("order", fresh, settings) : []),
    ...annotation(
      "location",
      ranked.filter((label) => earlier.has(label)),
      settings,
    ),
  ];
}

function annotation(
  kind: "order" | "location",
  ranked: readonly Label[],
  { topN, wording }: AnnotationSettings,
): Annotation[] {
  const labels = ranked.slice(0, mostLabels(topN, ranked.length));
  return labels.length === 0 ? [] : [{ kind, template: wording[kind], labels }];
}

function mostLabels(topN: TopN, ranked: number): number {
  if (topN === "all") return ranked;
  if (topN === "auto") return autoTopN(ranked);
  return topN < 1 ? Math.ceil(topN * ranked) : topN;
}

/**
 * A quarter of the ranked blocks, from three to eight: a label is two uncached tokens in every prompt. Naming all
 * of 100 costs as much as ten memories.
 */
export function autoTopN(ranked: number): number {
  return Math.min(8, Math.max(3, Math.ceil(ranked / 4)));
}
