import { type AnnotationSettings, DEFAULT_ANNOTATIONS } from "../../core/index.js";
import type { ANNOTATION_KINDS, ANNOTATION_WORDINGS, ArmAnnotations } from "../base/run-record.js";
import { PAPER_WORDING } from "./paper-annotations.js";

export type AnnotationKind = (typeof ANNOTATION_KINDS)[number];
export type AnnotationWordingName = (typeof ANNOTATION_WORDINGS)[number];

/** What a compose request is told for an arm's annotations. Null: nothing, which leaves memstem's default. */
export function composedAnnotations(arm: ArmAnnotations | null): AnnotationSettings | null {
  if (arm === null) return null;
  const { kind, top, wording } = arm;
  // The paper's ranking names all.
  const topN = wording === "paper" && top === "auto" ? "all" : top;
  return {
    order: kind === "order" || kind === "both",
    location: kind === "references" || kind === "both",
    topN: topN ?? DEFAULT_ANNOTATIONS.topN,
    wording: wording === "paper" ? PAPER_WORDING : DEFAULT_ANNOTATIONS.wording,
  };
}

/** Every combination that differs, in the order of the kinds: without annotations there is neither a number of labels nor a wording. */
export function annotationChoices(
  kinds: readonly AnnotationKind[],
  tops: readonly (number | "all" | "auto")[],
  wordings: readonly AnnotationWordingName[],
): readonly ArmAnnotations[] {
  return kinds.flatMap((kind): readonly ArmAnnotations[] =>
    kind === "none"
      ? [{ kind, top: null, wording: null }]
      : tops.flatMap((top) => wordings.map((wording) => ({ kind, top, wording }))),
  );
}
