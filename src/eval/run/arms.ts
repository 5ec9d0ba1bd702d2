import type { HistoryName } from "../../core/conversation/epoch.js";
import type { PolicyName, RetentionName } from "../../core/index.js";
import {
  type ARM_POLICIES,
  type ArmAnnotations,
  type ArmForm,
  type ClientWindow,
  type EvalArm,
  HAND_BUILT,
} from "../base/run-record.js";

export type ArmPolicy = (typeof ARM_POLICIES)[number];
export type ArmLayout = EvalArm["layout"];

/** Where memstem's memories stand: behind the instructions, before the newest question alone, or where they were given. */
export const ARM_PLACES = ["system", "question", "turn"] as const;
export type ArmPlace = (typeof ARM_PLACES)[number];

/** What an evaluation compares. */
export interface ArmChoices {
  readonly layouts: readonly ArmLayout[];
  readonly ks: readonly number[];
  readonly policies: readonly ArmPolicy[];
  /** Do not apply to prompts that are not memstem's. */
  readonly places: readonly ArmPlace[];
  /** Null: memstem's default. Do not apply to prompts that are not memstem's. */
  readonly annotations: readonly (ArmAnnotations | null)[];
  /** Null: memstem's default. Do not apply to prompts that are not memstem's. */
  readonly forms: readonly (ArmForm | null)[];
  /** What conversations keep of injected memories; does not apply to single prompts or to prompts that are not memstem's. */
  readonly retentions: readonly RetentionName[];
  /** What carry-over may send, as a multiple of the tokens retrieved; does not apply to the other policies. */
  readonly budgetRatios: readonly number[];
  readonly budgetOf: EvalArm["budgetOf"];
  /** How many of its last messages a conversation's client sends; null: all. */
  readonly windows: readonly (number | null)[];
  /** What memstem makes of a window; does not apply where all is sent. */
  readonly histories: readonly HistoryName[];
  /** Null: memstem's default. */
  readonly historyRatio: number | null;
}

/** Whether memstem builds an arm's prompts. */
function isComposed(policy: ArmPolicy): policy is PolicyName {
  return !HAND_BUILT.some((name) => name === policy);
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
      windowsOf(layout, choices).flatMap((messages) =>
        policies.flatMap((policy) =>
          waysOf(layout, policy, choices).flatMap((way) =>
            sentWith(messages, policy, way.place, choices).flatMap((window) =>
              annotationsOf(policy, way, choices).flatMap((annotations) =>
                (isComposed(policy) ? choices.forms : [null]).map((form) =>
                  armOf({ layout, k, policy, ...way, window, annotations, form }),
                ),
              ),
            ),
          ),
        ),
      ),
    ),
  );
  return [...new Map(arms.map((arm) => [arm.id, arm])).values()];
}

function windowsOf(layout: ArmLayout, { windows }: ArmChoices): readonly (number | null)[] {
  return layout === "conversation" ? windows : [null];
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

function armOf(arm: Omit<EvalArm, "id">): EvalArm {
  const { layout, k, window } = arm;
  const client = window === null ? [] : [`window=${window.messages}`];
  return { id: [layout, `k=${k}`, ...client, ...buildLabels(arm)].join(" "), ...arm };
}

/** How an arm builds its prompts: the parts of its name behind its group's. */
export function buildLabels({
  policy,
  retention,
  window,
  place,
  annotations,
  form,
  ...budget
}: Omit<EvalArm, "id">): string[] {
  return [
    policy,
    ...budgetLabel(budget),
    ...placeLabel(place),
    ...(retention === null ? [] : [retention]),
    ...historyLabel(window),
    ...annotationsLabel(annotations),
    ...(form === null ? [] : [`as ${form}`]),
  ];
}

/** A budget's part of an arm's name: empty without one. */
export function budgetLabel({ budgetRatio, budgetOf }: Pick<EvalArm, "budgetRatio" | "budgetOf">): readonly string[] {
  return budgetRatio === null ? [] : [`≤${budgetRatio}×${budgetOf === "all" ? " on average" : ""}`];
}

/** A place's part of an arm's name: empty for the policy's own. */
function placeLabel(place: EvalArm["place"]): readonly string[] {
  return place === null ? [] : ["in the system prompt"];
}

/** A history's part of an arm's name: empty without one. */
function historyLabel(window: ClientWindow | null): readonly string[] {
  if (window === null || window.history === null) return [];
  return window.ratio === null ? [window.history] : [window.history, `ratio ${window.ratio}`];
}

/** Annotations' part of an arm's name: empty for memstem's default. */
export function annotationsLabel(annotations: ArmAnnotations | null): readonly string[] {
  if (annotations === null) return [];
  const { kind, top, wording } = annotations;
  return [
    `annotations=${kind}`,
    ...(top === null || top === "auto" ? [] : [`top=${top}`]),
    ...(wording === "paper" ? ["paper's words"] : []),
  ];
}
