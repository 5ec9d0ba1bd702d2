import { type AnnotationSettings, autoTopN, DEFAULT_ANNOTATIONS } from "../../core/index.js";
import type { ANNOTATION_KINDS, ANNOTATION_WORDINGS, ArmAnnotations, EvalArm } from "../base/run-record.js";
import { PAPER_WORDING } from "./paper-annotations.js";

export type AnnotationKind = (typeof ANNOTATION_KINDS)[number];
export type AnnotationWordingName = (typeof ANNOTATION_WORDINGS)[number];

/**
 * What a compose request is told for an arm's annotations. Null: nothing, which leaves memstem's default. Other forms of lines are made of
 * those with labels, which single prompts have where a number of them is asked for.
 */
export function composedAnnotations({
  annotations,
  form,
  k,
}: Pick<EvalArm, "annotations" | "form" | "k">): AnnotationSettings | null {
  if (annotations === null) return form === null ? null : { ...DEFAULT_ANNOTATIONS, topN: autoTopN(k) };
  const { kind, top, wording } = annotations;
  // The paper's ranking names all.
  const topN = (wording === "paper" && top === "auto" ? "all" : top) ?? DEFAULT_ANNOTATIONS.topN;
  return {
    order: kind === "order" || kind === "both",
    location: kind === "references" || kind === "both",
    topN: topN === "auto" && form !== null ? autoTopN(k) : topN,
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
