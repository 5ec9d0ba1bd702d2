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
  renderAnnotation,
  SECTION_CLOSING,
  SECTION_OPENING,
  type Update,
} from "../prompt/section.js";
import { keptIn } from "../text/collections.js";
import type { Label } from "../text/ids.js";
import { fixedTokens, TOKENS_PER_MESSAGE, type TokenCounter } from "../text/message.js";
import type { Standing, Turn } from "./conversation.js";

export interface InjectionRequest {
  readonly requested: readonly StoredBlock[];
  readonly best: Label | null;
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

/** Decides what a turn injects: new blocks, then annotations that supersede texts of the prompt, or refer to its blocks (Alg. 3). */
export function planInjection(request: InjectionRequest, register: Pick<BlockRegister, "isUntrusted">): Injection {
  const { requested, best, standing, superseded, placed, wanted } = request;
  const isLabelled = request.hasLabels;
  const form = isLabelled ? { isLabelled } : {};
  const blocks = placed.map((label): InjectedBlock => (isLabelled ? { label, isLabelled } : { label }));
  // A superseded text is never quoted: whatever a line says of a text, it makes that text likelier (docs/quality.md, "What is repeated").
  const updates: Update[] = [];
  for (const { label } of requested) {
    const replaces = superseded.get(label) ?? [];
    const isSaid = replaces.every((old) => standing.replaced.get(old) === label);
    if ((isSaid && !standing.replaced.has(label)) || register.isUntrusted(label)) continue;
    const again = standing.given.has(label) ? { isAgain: true as const } : {};
    updates.push({ kind: "update", label, replaces, ...form, ...again });
  }
  // After a tool's result only new text justifies a section.
  if (request.placement !== "in-question" && blocks.length === 0 && updates.length === 0) {
    return NOTHING_INJECTED;
  }
  const ranked = requested.map(({ label }) => label);
  const updated = new Set(updates.map(({ label }) => label));
  const retrieved = placed.filter((label) => !request.carried.has(label));
  const ranking =
    wanted === "paper" && isLabelled
      ? paperAnnotations(
          ranked.filter((label) => !updated.has(label)),
          standing.given,
          retrieved,
        )
      : wanted === false
        ? []
        : bestAgain(best, placed, standing, updated);
  const references = ranking.filter(({ kind }) => kind === "location");
  const lines = ranking.filter(({ kind }) => kind !== "location");
  return { blocks, annotations: [...references, ...updates, ...lines] };
}

/** Superseded labels in a prompt, by the current label. None by a text of an untrusted origin. */
export type SupersededLabels = ReadonlyMap<Label, readonly Label[]>;

export function supersededIn(register: BlockRegister, standing: Standing): SupersededLabels {
  const replacing = new Map<Label, Label[]>();
  for (const old of standing.given) {
    const successor = register.successor(old);
    if (successor === null || successor === WITHDRAWN || register.isUntrusted(successor)) continue;
    keptIn(replacing, successor, () => []).push(old);
  }
  return replacing;
}

/** Those of a turn's blocks that its list gives: neither in the prompt already, nor updates of it. */
export function listed(
  blocks: readonly StoredBlock[],
  { given }: Standing,
  superseded: SupersededLabels,
): readonly StoredBlock[] {
  return blocks.filter(({ label }) => !given.has(label) && !superseded.has(label));
}

/** A turn's memories, then the current texts of superseded ones in the prompt: updates do not wait for a search to find them. */
export function withUpdates(
  register: BlockRegister,
  resolution: Resolution,
  standing: Standing,
  superseded: SupersededLabels,
): Resolution {
  const requested = new Set(resolution.blocks.map(({ label }) => label));
  const due = [...superseded].filter(
    ([label, old]) => !requested.has(label) && old.some((one) => standing.replaced.get(one) !== label),
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

/** Repeats the best block if it is neither first in `placed` nor an update, or is in an earlier section only. */
export function bestAgain(
  best: Label | null,
  placed: readonly Label[],
  { newest }: Pick<Standing, "newest">,
  updated: ReadonlySet<Label> = new Set(),
): Annotation[] {
  if (best === null || placed[0] === best || updated.has(best)) return [];
  const isNothingNew = placed.length === 0 && updated.size === 0;
  return isNothingNew && newest.has(best) ? [] : [{ kind: "best", labels: [best] }];
}

/**
 * ContextPilot's references to retrieved blocks earlier in the prompt, each in its block's place, and its ranking of reordered ones (arXiv
 * 2511.03475, 5.3 and 6; Alg. 3).
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
  const inSection = new Set(placed);
  let after = 0;
  const references = ranked.flatMap((label): Annotation[] => {
    if (earlier.has(label)) return [{ kind: "location", labels: [label], after }];
    if (inSection.has(label)) after++;
    return [];
  });
  return isMoved ? [...references, { kind: "order", labels: fresh }] : references;
}
