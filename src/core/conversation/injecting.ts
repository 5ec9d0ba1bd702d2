import type { BlockRegister } from "../blocks/block-register.js";
import { type RequestedMemory, type Resolution, type StoredBlock, WITHDRAWN } from "../blocks/context-block.js";
import { type AnnotationSettings, bestAgain, rankingAnnotations } from "../prompt/annotations.js";
import {
  type Annotation,
  type InjectedBlock,
  type Injection,
  isEmptyInjection,
  NOTHING_INJECTED,
} from "../prompt/injection.js";
import { LONE_SECTION_CLOSING, renderAnnotation, SECTION_CLOSING, SECTION_OPENING } from "../prompt/rendering.js";
import type { Label } from "../text/ids.js";
import { type TokenCounter, tokensPerMessage } from "../text/token-counter.js";
import type { Standing } from "./conversation.js";
import type { Turn } from "./turn.js";

/** What a turn has to inject. */
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
  const { requested, standing, superseded: replacing, placed, settings, hasLabels } = request;
  const blocks = placed.map(
    (label): InjectedBlock => ({
      label,
      replaces: replacing.get(label) ?? [],
      ...(hasLabels ? {} : { isUnlabelled: true }),
    }),
  );
  const earlier = requested.map(({ label }) => label).filter((label) => standing.given.has(label));
  const isSaidOf = (old: Label, successor: Label) => standing.replaced.get(old) === successor;
  const restored = earlier
    .filter(
      (label) => standing.replaced.has(label) || replacing.get(label)?.some((old) => !isSaidOf(old, label)) === true,
    )
    .map((label): Annotation => ({ kind: "restored", label, replaces: replacing.get(label) ?? [] }));
  const withdrawn = (replacing.get(WITHDRAWN) ?? []).filter((label) => !isSaidOf(label, WITHDRAWN));
  const corrections: Annotation[] =
    withdrawn.length === 0 ? restored : [...restored, { kind: "withdrawn", labels: withdrawn }];
  // After a tool's result new text justifies a section, a mere reference does not.
  if (request.placement !== "in-question" && blocks.length === 0 && corrections.length === 0) {
    return NOTHING_INJECTED;
  }
  const ranked = requested.map(({ label }) => label);
  const ranking = hasLabels
    ? rankingAnnotations(
        { ranked, earlier: new Set(earlier), placed: placed.filter((label) => !request.carried.has(label)) },
        settings,
      )
    : bestAgain(ranked, placed, settings);
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
    if (successor === null) continue;
    const replaced = replacing.get(successor);
    if (replaced === undefined) replacing.set(successor, [old]);
    else replaced.push(old);
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
  let tokens = countTokens(SECTION_OPENING) + closingTokens(placement, countTokens);
  for (const block of injection.blocks) tokens += register.lineTokens(block);
  for (const annotation of injection.annotations)
    tokens += countTokens(`${renderAnnotation(annotation, register.textOf)}\n`);
  return tokens;
}

/** Tokens after the last line of a section, up to the message's own text; if the section ends a message, the template's tokens included. */
export function closingTokens(placement: Turn["placement"], countTokens: TokenCounter): number {
  switch (placement) {
    case "in-question":
      return countTokens(SECTION_CLOSING);
    case "after-tool-result":
    case "after-tool-result-as-parts":
      return countTokens(LONE_SECTION_CLOSING) + tokensPerMessage(countTokens, "user");
    // The separator from the result has the same tokens before the section as after it.
    case "in-tool-result":
      return countTokens(SECTION_CLOSING) + tokensPerMessage(countTokens, "tool");
  }
}
