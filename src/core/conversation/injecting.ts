import type { BlockRegister } from "../blocks/block-register.js";
import { type RequestedMemory, type Resolution, type StoredBlock, WITHDRAWN } from "../blocks/context-block.js";
import {
  type Annotation,
  hasLabels,
  type InjectedBlock,
  type Injection,
  isEmptyInjection,
  isOfMemories,
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
  readonly requested: readonly StoredBlock[];
  readonly standing: Standing;
  readonly superseded: SupersededLabels;
  /** Blocks that are not in the prompt yet, in prompt order. */
  readonly placed: readonly Label[];
  /** Placed blocks that were not retrieved. No annotation names them. */
  readonly carried: ReadonlySet<Label>;
  readonly placement: Turn["placement"];
  readonly wanted: Annotations;
  /** Whether labels are printed because something may refer to them. */
  readonly hasLabels: boolean;
}

/** Decides what a turn injects: new blocks, then annotations, which refer to blocks that are in the prompt already (Alg. 3). */
export function planInjection(request: InjectionRequest): Injection {
  const { requested, standing, superseded: replacing, placed, wanted } = request;
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
  // A quoting line does not name the replacement, so it is not repeated for a text that no longer holds.
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
  // After a tool's result only new text justifies a section.
  if (request.placement !== "in-question" && blocks.length === 0 && corrections.length === 0) {
    return NOTHING_INJECTED;
  }
  const ranked = requested.map(({ label }) => label);
  const retrieved = placed.filter((label) => !request.carried.has(label));
  const ranking =
    wanted === "paper" && isLabelled
      ? paperAnnotations(ranked, new Set(earlier), retrieved)
      : wanted === false
        ? []
        : bestAgain(ranked, [...restored, ...placed], standing);
  const annotations = [...corrections, ...ranking];
  return { blocks, annotations };
}

/** Superseded labels in a prompt, by the current label or {@link WITHDRAWN}. */
export type SupersededLabels = ReadonlyMap<Label, readonly Label[]>;

export function supersededIn(register: BlockRegister, standing: Standing): SupersededLabels {
  const replacing = new Map<Label, Label[]>();
  for (const old of standing.given) {
    const successor = register.successor(old);
    if (successor !== null) keptIn(replacing, successor, () => []).push(old);
  }
  return replacing;
}

/** A turn's memories, then the current texts of superseded ones in the prompt: corrections do not wait for a search to find them. */
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

/** Estimated tokens of an injection: the sum over its lines, an upper bound. */
export function injectionTokens(
  injection: Injection,
  placement: Turn["placement"],
  register: BlockRegister,
  countTokens: TokenCounter,
): number {
  if (isEmptyInjection(injection)) return 0;
  const tags = fixedTokens(SECTION_OPENING, countTokens) + closingTokens(placement, countTokens);
  // Updated instructions alone have no tags.
  let tokens = isOfMemories(injection) ? tags : TOKENS_PER_MESSAGE;
  for (const block of injection.blocks) tokens += register.lineTokens(block);
  for (const annotation of injection.annotations)
    tokens += countTokens(`${renderAnnotation(annotation, register.textOf)}\n`);
  return tokens;
}

/** Tokens between a section's last line and the message's own text, or the template's if the section ends the message. */
export function closingTokens(placement: Turn["placement"], countTokens: TokenCounter): number {
  switch (placement) {
    case "in-question":
      return fixedTokens(SECTION_CLOSING, countTokens);
    case "after-tool-result":
    case "after-tool-result-as-parts":
      return fixedTokens(LONE_SECTION_CLOSING, countTokens) + TOKENS_PER_MESSAGE;
    // The separator has the same tokens on either side of the section.
    case "in-tool-result":
      return fixedTokens(SECTION_CLOSING, countTokens) + TOKENS_PER_MESSAGE;
  }
}

/** True: a line that quotes the best memory. `paper`: ContextPilot's, which name labels. */
export type Annotations = boolean | "paper";

/** Whether the next blocks get labels: as earlier ones in the prompt, else where annotations need them. */
export function sectionsHaveLabels(sections: readonly Pick<Injection, "blocks">[], annotations: Annotations): boolean {
  const last = sections.findLast(({ blocks }) => blocks.length > 0);
  return last === undefined ? annotations === "paper" : hasLabels(last);
}

/** Repeats the most relevant block if it is not first in `placed`, or is in an earlier section only. `ranked`: best first. */
export function bestAgain(
  ranked: readonly Label[],
  placed: readonly Label[],
  { newest }: Pick<Standing, "newest">,
): Annotation[] {
  const [best] = ranked;
  if (best === undefined || placed[0] === best) return [];
  return placed.length === 0 && newest.has(best) ? [] : [{ kind: "best", labels: [best] }];
}

/**
 * ContextPilot's references to retrieved blocks earlier in the prompt, and its ranking of reordered ones (arXiv 2511.03475, 5.3 and 6; Alg. 3).
 *
 * @param placed this turn's retrieved blocks, in prompt order
 */
export function paperAnnotations(
  ranked: readonly Label[],
  earlier: ReadonlySet<Label>,
  placed: readonly Label[],
): Annotation[] {
  const fresh = ranked.filter((label) => !earlier.has(label));
  const isMoved = fresh.some((label, rank) => placed[rank] !== label);
  return [
    ...ranked.filter((label) => earlier.has(label)).map((label) => ({ kind: "location", labels: [label] }) as const),
    ...(isMoved ? [{ kind: "order", labels: fresh } as const] : []),
  ];
}
