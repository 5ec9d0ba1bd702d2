import { type AnnotationSettings, DEFAULT_ANNOTATIONS } from "../../core/index.js";
import type { ANNOTATION_KINDS, ANNOTATION_WORDINGS, ArmAnnotations } from "../base/run-record.js";

export type AnnotationKind = (typeof ANNOTATION_KINDS)[number];
export type AnnotationWordingName = (typeof ANNOTATION_WORDINGS)[number];

/**
 * ContextPilot's annotations with memstem's labels: the ranking as its paper words it (arXiv 2511.03475), the reference as its
 * documentation does (https://efficientcontext.github.io/contextpilot-docs/reference/primitives).
 */
const PAPER_WORDING = {
  order: "Please read the context in the following priority order: {labels} and answer the question.",
  location: "Please refer to {labels} from the previous context.",
} as const;

/** What a compose request is told for an arm's annotations. Null: nothing, which leaves memstem's default. */
export function composedAnnotations(arm: ArmAnnotations | null): AnnotationSettings | null {
  if (arm === null) return null;
  const { kind, top, wording } = arm;
  return {
    order: kind === "order" || kind === "both",
    location: kind === "references" || kind === "both",
    topN: top ?? DEFAULT_ANNOTATIONS.topN,
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
