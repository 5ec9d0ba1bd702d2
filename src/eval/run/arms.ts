import type { HistoryName } from "../../core/conversation/epoch.js";
import {
  type AnnotationSettings,
  autoTopN,
  type ChatMessage,
  DEFAULT_ANNOTATIONS,
  type PolicyName,
  type RetentionName,
} from "../../core/index.js";
import {
  type ARM_POLICIES,
  type ArmAnnotations,
  type ArmDepth,
  type ArmForm,
  type ClientWindow,
  type EvalArm,
  HAND_BUILT,
} from "../base/run-record.js";
import { PAPER_WORDING } from "./paper-annotations.js";

export type ArmPolicy = (typeof ARM_POLICIES)[number];
export type ArmLayout = EvalArm["layout"];

/** Where memprefix's memories stand: after the instructions, before the newest question alone, or where they were given. */
export const ARM_PLACES = ["system", "question", "turn"] as const;
export type ArmPlace = (typeof ARM_PLACES)[number];

/** What an evaluation compares. */
export interface ArmChoices {
  readonly layouts: readonly ArmLayout[];
  readonly ks: readonly number[];
  readonly policies: readonly ArmPolicy[];
  /** Do not apply to prompts that are not memprefix's. */
  readonly places: readonly ArmPlace[];
  /** Null: memprefix's default. Do not apply to prompts that are not memprefix's. */
  readonly annotations: readonly (ArmAnnotations | null)[];
  /** Null: memprefix's default. Do not apply to prompts that are not memprefix's. */
  readonly forms: readonly (ArmForm | null)[];
  /** Null: all memories. Apply to prompts that are sent as memprefix composes them. */
  readonly depths: readonly (ArmDepth | null)[];
  /** What conversations keep of injected memories; does not apply to single prompts or to prompts that are not memprefix's. */
  readonly retentions: readonly RetentionName[];
  /** What carry-over may send, as a multiple of the tokens retrieved; does not apply to the other policies. */
  readonly budgetRatios: readonly number[];
  readonly budgetOf: EvalArm["budgetOf"];
  /** How many of its last messages a conversation's client sends; null: all. */
  readonly windows: readonly (number | null)[];
  /** What memprefix makes of a window; does not apply where all is sent. */
  readonly histories: readonly HistoryName[];
  /** Null: memprefix's default. */
  readonly historyRatio: number | null;
}

/** Whether memprefix builds an arm's prompts. */
function isComposed(policy: ArmPolicy): policy is PolicyName {
  return !HAND_BUILT.some((name) => name === policy);
}

/** Whether prompts that memprefix composes reach the engine as they are: neither moved, nor written in another form. */
export function isSentAsComposed({
  place,
  annotations,
  form,
}: Pick<EvalArm, "place" | "annotations" | "form">): boolean {
  return place === null && form === null && annotations?.wording !== "paper";
}

/** Whether `history_ratio` bounds what it sends. */
export function hasRatio(history: HistoryName): boolean {
  return history !== "exact" && history !== "stored";
}

/** Every combination that makes a different prompt, once. */
export function armsOf(choices: ArmChoices): EvalArm[] {
  const { layouts, ks, policies } = choices;
  const arms = layouts.flatMap((layout) =>
    ks.flatMap((k) =>
      (layout === "conversation" ? choices.windows : [null]).flatMap((messages) =>
        policies.flatMap((policy) =>
          waysOf(layout, policy, choices).flatMap((way) =>
            sentWith(messages, policy, way.place, choices).flatMap((window) =>
              annotationsOf(policy, way, choices).flatMap((annotations) =>
                (isComposed(policy) ? choices.forms : [null]).flatMap((form) => {
                  const arm = { layout, k, policy, ...way, window, annotations, form };
                  return (isComposed(policy) && isSentAsComposed(arm) ? choices.depths : [null]).map((depth) => ({
                    id: idOf({ ...arm, depth }),
                    ...arm,
                    depth,
                  }));
                }),
              ),
            ),
          ),
        ),
      ),
    ),
  );
  return [...new Map(arms.map((arm) => [arm.id, arm])).values()];
}

type Way = Pick<EvalArm, "place" | "retention" | "budgetRatio" | "budgetOf">;

/** Places, retentions and budgets of one policy. Before the question alone is where `ephemeral` leaves them; single prompts have one turn. */
function waysOf(
  layout: ArmLayout,
  policy: ArmPolicy,
  { places, retentions, budgetRatios, budgetOf }: ArmChoices,
): readonly Way[] {
  if (!isComposed(policy)) return [{ place: null, retention: null, budgetRatio: null, budgetOf }];
  const budgets = policy === "carry-over" ? budgetRatios : [null];
  return budgets.flatMap((budgetRatio) =>
    places.flatMap((place): readonly Way[] => {
      const budget = { budgetRatio, budgetOf };
      if (place === "system") return [{ place, retention: null, ...budget }];
      if (layout === "single") return [{ place: null, retention: null, ...budget }];
      const kept = place === "question" ? (["ephemeral"] as const) : retentions;
      return kept.map((retention) => ({ place: null, retention, ...budget }));
    }),
  );
}

function sentWith(
  messages: number | null,
  policy: ArmPolicy,
  place: EvalArm["place"],
  { histories, historyRatio }: ArmChoices,
): readonly (ClientWindow | null)[] {
  if (messages === null) return [null];
  if (!isComposed(policy) || place === "system") return [{ messages, history: null, ratio: null }];
  return histories.map((history) => ({ messages, history, ratio: hasRatio(history) ? historyRatio : null }));
}

const NO_ANNOTATIONS: ArmAnnotations = { kind: "none", top: null, wording: null };

/** Where nothing stands in earlier turns there is nothing to refer to, and the search's own order needs no line. */
function annotationsOf(
  policy: ArmPolicy,
  { retention }: Way,
  { annotations }: ArmChoices,
): readonly (ArmAnnotations | null)[] {
  if (!isComposed(policy)) return [null];
  const hasEarlier = retention !== null && retention !== "ephemeral";
  return annotations.map((wanted) => {
    if (wanted === null || hasEarlier) return wanted;
    if (wanted.kind === "none" || wanted.kind === "references" || policy === "retrieval") return NO_ANNOTATIONS;
    return { ...wanted, kind: "order" };
  });
}

function idOf(arm: Omit<EvalArm, "id">): string {
  const { layout, k, window } = arm;
  const client = window === null ? [] : [`window=${window.messages}`];
  return [layout, `k=${k}`, ...client, ...buildLabels(arm)].join(" ");
}

/** How an arm builds its prompts: the parts of its name after its group's. */
export function buildLabels({
  policy,
  retention,
  window,
  place,
  annotations,
  form,
  depth,
  ...budget
}: Omit<EvalArm, "id">): string[] {
  return [
    policy,
    ...budgetLabel(budget),
    ...(place === null ? [] : ["in the system prompt"]),
    ...(retention === null ? [] : [retention]),
    ...(window?.history == null ? [] : [window.history]),
    ...(window?.ratio == null ? [] : [`ratio ${window.ratio}`]),
    ...annotationsLabel(annotations),
    ...(form === null ? [] : [`as ${form}`]),
    ...depthLabel(depth),
  ];
}

/** Adaptive depth's part of an arm's name: empty without. */
export function depthLabel(depth: ArmDepth | null): readonly string[] {
  return depth === null ? [] : [`depth from ${depth.firstBlocks} at ${depth.entropyNats} nats`];
}

/** A budget's part of an arm's name: empty without one. */
export function budgetLabel({ budgetRatio, budgetOf }: Pick<EvalArm, "budgetRatio" | "budgetOf">): readonly string[] {
  return budgetRatio === null ? [] : [`≤${budgetRatio}×${budgetOf === "all" ? " on average" : ""}`];
}

/** Annotations' part of an arm's name: empty for memprefix's default. */
export function annotationsLabel(annotations: ArmAnnotations | null): readonly string[] {
  if (annotations === null) return [];
  const { kind, top, wording } = annotations;
  return [
    `annotations=${kind}`,
    ...(top === null || top === "auto" ? [] : [`top=${top}`]),
    ...(wording === "paper" ? ["paper's words"] : []),
  ];
}

/**
 * What a compose request says for an arm's annotations. Null: nothing, which leaves memprefix's default. Other forms of lines are made of
 * those with labels, which single prompts have where a number of them is requested.
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
  kinds: readonly ArmAnnotations["kind"][],
  tops: readonly ArmAnnotations["top"][],
  wordings: readonly ArmAnnotations["wording"][],
): readonly ArmAnnotations[] {
  return kinds.flatMap((kind) =>
    kind === "none"
      ? [NO_ANNOTATIONS]
      : tops.flatMap((top) => wordings.map((wording): ArmAnnotations => ({ kind, top, wording }))),
  );
}

/** A memory's line, from its label and its text as memprefix writes them. */
const LINE: Readonly<Record<ArmForm, string>> = {
  numbers: "$1 $2",
  brackets: "[$1] $2",
  bullets: "- $2",
  plain: "$2",
};

/** Whether a form has what annotations refer to. */
export function hasLabels(form: ArmForm | null): boolean {
  return form === null || LINE[form].includes("$1");
}

/** The same prompt with its memories written in another form, those of earlier turns too; for null unmodified. */
export function inForm(messages: readonly ChatMessage[], form: ArmForm | null): readonly ChatMessage[] {
  if (form === null) return messages;
  const written = (text: string) =>
    text.replace(/<memories>\n.*?<\/memories>/gs, (section) => section.replace(/^(\d+) (.*)$/gm, LINE[form]));
  return messages.map((message) => {
    const { content } = message;
    if (typeof content === "string") return { ...message, content: written(content) };
    if (!Array.isArray(content)) return message;
    const parts = content.map((part) =>
      typeof part["text"] === "string" ? { ...part, text: written(part["text"]) } : part,
    );
    return { ...message, content: parts };
  });
}

/**
 * What an arm's client sends of the messages before its question: nothing in single prompts; in a conversation all, the last ones of its
 * window, of which the question is one, or with `stored` the last answer alone.
 */
export function historySent(
  history: readonly ChatMessage[],
  { layout, window }: Pick<EvalArm, "layout" | "window">,
): readonly ChatMessage[] {
  if (layout === "single") return [];
  if (window === null) return history;
  const sent = window.history === "stored" ? 1 : window.messages - 1;
  return history.slice(Math.max(0, history.length - sent));
}
