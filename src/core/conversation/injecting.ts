import type { BlockRegister } from "../blocks/block-register.js";
import type { StoredBlock } from "../blocks/context-block.js";
import { type AnnotationSettings, locationAnnotation, orderAnnotation } from "../prompt/annotations.js";
import { type Annotation, type Injection, isEmptyInjection, NOTHING_INJECTED } from "../prompt/injection.js";
import { LONE_SECTION_CLOSING, renderAnnotation, SECTION_CLOSING, SECTION_OPENING } from "../prompt/rendering.js";
import type { Label } from "../text/ids.js";
import { groupBy } from "../text/lists.js";
import { type TokenCounter, tokensPerMessage } from "../text/token-counter.js";
import type { Standing } from "./conversation.js";
import type { Turn } from "./turn.js";

/** What a turn has to say. */
export interface InjectionRequest {
  /** Distinct blocks that were asked for, in relevance order. */
  readonly requested: readonly StoredBlock[];
  /** What the prompt says already. */
  readonly standing: Standing;
  /** The blocks that are not in the prompt yet, in the order they are to stand in. */
  readonly placed: readonly Label[];
  /** Those of them that were not asked for; no annotation names them. */
  readonly carried: ReadonlySet<Label>;
  readonly placement: Turn["placement"];
  readonly settings: AnnotationSettings;
}

/**
 * Decides what a turn injects: new blocks, each with what it replaces, then the annotations. What is in the prompt already is
 * referred to, never repeated (Alg. 3); where a memory's text became one that was given earlier, that one is said to be current.
 */
export function planInjection(register: BlockRegister, request: InjectionRequest): Injection {
  const { requested, standing, placed, settings } = request;
  const replacing = replacedBySuccessor(register, standing);
  const blocks = placed.map((label) => register.injected(label, replacing.get(label) ?? []));
  const earlier = requested.map(({ label }) => label).filter((label) => standing.given.has(label));
  const fresh = requested.map(({ label }) => label).filter((label) => !standing.given.has(label));
  const isSaidOf = (old: Label, successor: Label) => standing.replaced.get(old) === successor;
  const restored = earlier
    .filter(
      (label) => standing.replaced.has(label) || replacing.get(label)?.some((old) => !isSaidOf(old, label)) === true,
    )
    .map((label): Annotation => ({ kind: "restored", label, replaces: replacing.get(label) ?? [] }));
  // Behind a tool's result a section is worth it for new text, not for a mere reference.
  if (request.placement !== "in-question" && blocks.length === 0 && restored.length === 0) {
    return NOTHING_INJECTED;
  }
  const annotations = [
    ...restored,
    ...orderAnnotation(
      fresh,
      placed.filter((label) => !request.carried.has(label)),
      settings,
    ),
    ...locationAnnotation(earlier, settings),
  ];
  return { blocks, annotations };
}

/** Labels of blocks whose text takes the place of one that the prompt holds. */
export function supersedesStanding(register: BlockRegister, standing: Standing): ReadonlySet<Label> {
  return new Set(replacedBySuccessor(register, standing).keys());
}

/** Labels in the prompt whose text is superseded, by the label that took their place. */
function replacedBySuccessor(register: BlockRegister, standing: Standing): ReadonlyMap<Label, readonly Label[]> {
  const superseded = [...standing.given].flatMap((old) => {
    const successor = register.successor(old);
    return successor === null ? [] : [{ old, successor }];
  });
  const replacing = groupBy(superseded, ({ successor }) => successor);
  return new Map([...replacing].map(([label, replaced]) => [label, replaced.map(({ old }) => old)]));
}

/** Tokens that an injection adds to the prompt, estimated line by line; what it comes to with the message's own text is not more. */
export function injectionTokens(
  injection: Injection,
  placement: Turn["placement"],
  register: BlockRegister,
  countTokens: TokenCounter,
): number {
  if (isEmptyInjection(injection)) return 0;
  let tokens = countTokens(SECTION_OPENING) + closingTokens(placement, countTokens);
  for (const block of injection.blocks) tokens += register.lineTokens(block);
  for (const annotation of injection.annotations) tokens += countTokens(`${renderAnnotation(annotation)}\n`);
  return tokens;
}

/** Tokens behind the last line of a section, up to the message's own text; where it ends a message, what the template adds too. */
export function closingTokens(placement: Turn["placement"], countTokens: TokenCounter): number {
  switch (placement) {
    case "in-question":
      return countTokens(SECTION_CLOSING);
    case "after-tool-result":
    case "after-tool-result-as-parts":
      return countTokens(LONE_SECTION_CLOSING) + tokensPerMessage(countTokens, "user");
    // What parts it from the result counts the same in front of it.
    case "in-tool-result":
      return countTokens(SECTION_CLOSING) + tokensPerMessage(countTokens, "tool");
  }
}
