import type { BlockRegister } from "../blocks/block-register.js";
import { type RequestedMemory, type Resolution, type StoredBlock, WITHDRAWN } from "../blocks/context-block.js";
import { forgesStructure } from "../escaping/escaping.js";
import {
  type Annotation,
  hasLabels,
  type InjectedBlock,
  type Injection,
  isEmptyInjection,
  LONE_SECTION_CLOSING,
  NOTHING_INJECTED,
  NOTHING_REPLACED,
  renderAnnotation,
  SECTION_CLOSING,
  SECTION_OPENING,
} from "../prompt/section.js";
import { keptIn } from "../text/collections.js";
import type { Label } from "../text/ids.js";
import { fixedTokens, TOKENS_PER_MESSAGE, type TokenCounter } from "../text/message.js";
import type { Standing, Turn } from "./conversation.js";

export interface InjectionRequest {
  /** Distinct retrieved blocks, in relevance order. */
  readonly requested: readonly StoredBlock[];
  /** What the prompt contains already, and what of that is superseded. */
  readonly standing: Standing;
  readonly superseded: SupersededLabels;
  /** The blocks that are not in the prompt yet, in prompt order. */
  readonly placed: readonly Label[];
  /** Those of them that were not retrieved; no annotation names them. */
  readonly carried: ReadonlySet<Label>;
  readonly placement: Turn["placement"];
  readonly settings: AnnotationSettings;
  /** Whether blocks are written with their labels: where something may refer to them. */
  readonly hasLabels: boolean;
}

/**
 * Decides what a turn injects: new blocks, each with the labels it supersedes, then annotations. Blocks that are in the prompt already are
 * referred to, never repeated (Alg. 3). If a memory's text changed back to one that the prompt contains, an annotation declares that one
 * current.
 */
export function planInjection(request: InjectionRequest): Injection {
  const { requested, standing, superseded: replacing, placed, settings } = request;
  const isLabelled = request.hasLabels;
  const blocks = placed.map((label): InjectedBlock => {
    const replaces = replacing.get(label) ?? NOTHING_REPLACED;
    return isLabelled ? { label, replaces, isLabelled } : { label, replaces };
  });
  const earlier = requested.map(({ label }) => label).filter((label) => standing.given.has(label));
  const isSaidOf = (old: Label, successor: Label) => standing.replaced.get(old) === successor;
  const restored = earlier.filter(
    (label) => standing.replaced.has(label) || replacing.get(label)?.some((old) => !isSaidOf(old, label)) === true,
  );
  const withdrawn = (replacing.get(WITHDRAWN) ?? []).filter((label) => !isSaidOf(label, WITHDRAWN));
  // A line that quotes does not say what replaces a text, so it is not said again of one that no longer holds.
  const outdated = (labels: readonly Label[]) =>
    labels
      .filter((label) => !standing.replaced.has(label))
      .map((label) => ({ kind: "outdated", labels: [label] }) as const);
  const corrections: Annotation[] = isLabelled
    ? [
        ...restored.map((label) => ({ kind: "restored", label, replaces: replacing.get(label) ?? [] }) as const),
        ...(withdrawn.length === 0 ? [] : [{ kind: "withdrawn", labels: withdrawn } as const]),
      ]
    : [
        ...blocks.flatMap(({ replaces }) => (replaces.length === 0 ? [] : outdated(replaces))),
        ...restored.flatMap((label): Annotation[] => {
          const replaces = replacing.get(label) ?? [];
          return [{ kind: "restored", label, replaces, isQuoted: true }, ...outdated(replaces)];
        }),
        ...outdated(withdrawn),
      ];
  // After a tool's result new text justifies a section, a mere reference does not.
  if (request.placement !== "in-question" && blocks.length === 0 && corrections.length === 0) {
    return NOTHING_INJECTED;
  }
  const ranked = requested.map(({ label }) => label);
  const ranking = isLabelled
    ? rankingAnnotations(
        { ranked, earlier: new Set(earlier), placed: placed.filter((label) => !request.carried.has(label)) },
        settings,
      )
    : bestAgain(ranked, [...restored, ...placed], standing, settings);
  const annotations = [...corrections, ...ranking];
  return { blocks, annotations };
}

/** Labels in a prompt whose text is superseded, by the label of the current block that supersedes it, or {@link WITHDRAWN}. */
export type SupersededLabels = ReadonlyMap<Label, readonly Label[]>;

/** What of a prompt is superseded. Looks at every block in it, so once per prompt. */
export function supersededIn(register: BlockRegister, standing: Standing): SupersededLabels {
  const replacing = new Map<Label, Label[]>();
  for (const old of standing.given) {
    const successor = register.successor(old);
    if (successor !== null) keptIn(replacing, successor, () => []).push(old);
  }
  return replacing;
}

/**
 * A turn's memories, and after them, as the least relevant ones, the current texts of which the prompt has only what they superseded:
 * once that is known, it does not wait for a search to find them.
 */
export function withCorrections(
  register: BlockRegister,
  resolution: Resolution,
  standing: Standing,
  superseded: SupersededLabels,
): Resolution {
  const requested = new Set(resolution.blocks.map(({ label }) => label));
  const due = [...superseded].filter(
    ([label, old]) =>
      label !== WITHDRAWN && !requested.has(label) && old.some((one) => standing.replaced.get(one) !== label),
  );
  const blocks = due.flatMap(([label]) => register.get(label) ?? []);
  if (blocks.length === 0) return resolution;
  const memories = blocks.flatMap(({ label }, at): RequestedMemory[] => {
    const memoryId = register.memoryOf(label);
    return memoryId === undefined ? [] : [{ memoryId, label, rank: resolution.memories.length + at }];
  });
  return {
    ...resolution,
    blocks: [...resolution.blocks, ...blocks],
    memories: [...resolution.memories, ...memories],
  };
}

/**
 * Estimated tokens that an injection adds to the prompt: the sum over its lines, an upper bound once they are joined with the message's
 * text.
 */
export function injectionTokens(
  injection: Injection,
  placement: Turn["placement"],
  register: BlockRegister,
  countTokens: TokenCounter,
): number {
  if (isEmptyInjection(injection)) return 0;
  let tokens = fixedTokens(SECTION_OPENING, countTokens) + closingTokens(placement, countTokens);
  for (const block of injection.blocks) tokens += register.lineTokens(block);
  for (const annotation of injection.annotations)
    tokens += countTokens(`${renderAnnotation(annotation, register.textOf)}\n`);
  return tokens;
}

/** Tokens after the last line of a section, up to the message's own text; if the section ends a message, the template's tokens included. */
export function closingTokens(placement: Turn["placement"], countTokens: TokenCounter): number {
  switch (placement) {
    case "in-question":
      return fixedTokens(SECTION_CLOSING, countTokens);
    case "after-tool-result":
    case "after-tool-result-as-parts":
      return fixedTokens(LONE_SECTION_CLOSING, countTokens) + TOKENS_PER_MESSAGE;
    // The separator from the result has the same tokens before the section as after it.
    case "in-tool-result":
      return fixedTokens(SECTION_CLOSING, countTokens) + TOKENS_PER_MESSAGE;
  }
}

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

/** Whether a prompt's next blocks are written with their labels: as those that it has already are, else where a caller's lines name them. */
export function sectionsHaveLabels(
  sections: readonly Pick<Injection, "blocks">[],
  annotations: AnnotationSettings,
): boolean {
  const last = sections.findLast(({ blocks }) => blocks.length > 0);
  return last === undefined ? wantsLabels(annotations) : hasLabels(last);
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
 * The ranking of blocks without labels: the most relevant one again, where another stands first, or where it stands earlier and not in the last
 * section.
 *
 * @param ranked best first
 * @param placed what this turn names or gives, in prompt order, carried ones included
 */
export function bestAgain(
  ranked: readonly Label[],
  placed: readonly Label[],
  { newest }: Pick<Standing, "newest">,
  { order }: AnnotationSettings,
): Annotation[] {
  const [best] = ranked;
  if (!order || best === undefined || placed[0] === best) return [];
  return placed.length === 0 && newest.has(best) ? [] : [{ kind: "best", labels: [best] }];
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
