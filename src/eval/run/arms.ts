import type { HistoryName } from "../../core/conversation/epoch.js";
import { DEFAULT_RETENTION, type PolicyName, type RetentionName } from "../../core/index.js";
import { type ARM_POLICIES, type ClientWindow, type EvalArm, HAND_BUILT } from "../base/run-record.js";

export type ArmPolicy = (typeof ARM_POLICIES)[number];
export type ArmLayout = EvalArm["layout"];

/** What an evaluation compares. */
export interface ArmChoices {
  readonly layouts: readonly ArmLayout[];
  readonly ks: readonly number[];
  readonly policies: readonly ArmPolicy[];
  /** What conversations keep of injected memories; does not apply to single prompts or to prompts that are not memstem's. */
  readonly retentions: readonly RetentionName[];
  /** What carry-over may send, as a multiple of the tokens retrieved; does not apply to the other policies. */
  readonly budgetRatio: number;
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
  const { layouts, ks, policies, retentions, budgetRatio, budgetOf } = choices;
  const arms = layouts.flatMap((layout) =>
    ks.flatMap((k) =>
      windowsOf(layout, choices).flatMap((messages) =>
        policies.flatMap((policy) => {
          const keeps = layout === "conversation" && isComposed(policy) ? retentions : [null];
          const budget = { budgetRatio: policy === "carry-over" ? budgetRatio : null, budgetOf };
          return keeps.flatMap((retention) =>
            sentWith(messages, policy, choices).map((window) =>
              armOf({ layout, k, policy, retention, ...budget, window }),
            ),
          );
        }),
      ),
    ),
  );
  return [...new Map(arms.map((arm) => [arm.id, arm])).values()];
}

function windowsOf(layout: ArmLayout, { windows }: ArmChoices): readonly (number | null)[] {
  return layout === "conversation" ? windows : [null];
}

function sentWith(
  messages: number | null,
  policy: ArmPolicy,
  { histories, historyRatio }: ArmChoices,
): readonly (ClientWindow | null)[] {
  if (messages === null) return [null];
  if (!isComposed(policy)) return [{ messages, history: null, ratio: null }];
  return histories.map((history) => ({ messages, history, ratio: hasRatio(history) ? historyRatio : null }));
}

function armOf(arm: Omit<EvalArm, "id">): EvalArm {
  const { layout, k, policy, retention, window, ...budget } = arm;
  const id = [
    layout,
    `k=${k}`,
    ...(window === null ? [] : [`window=${window.messages}`]),
    policy,
    ...budgetLabel(budget),
    ...(retention === null ? [] : [retention]),
    ...historyLabel(window),
  ].join(" ");
  return { id, ...arm };
}

/** A budget's part of an arm's name: empty without one. */
export function budgetLabel({ budgetRatio, budgetOf }: Pick<EvalArm, "budgetRatio" | "budgetOf">): readonly string[] {
  return budgetRatio === null ? [] : [`≤${budgetRatio}×${budgetOf === "all" ? " on average" : ""}`];
}

/** A history's part of an arm's name: empty without one. */
export function historyLabel(window: ClientWindow | null): readonly string[] {
  if (window === null || window.history === null) return [];
  return window.ratio === null ? [window.history] : [window.history, `ratio ${window.ratio}`];
}

/** The default comparison. */
export const DEFAULT_ARMS: ArmChoices = {
  layouts: ["single"],
  ks: [20, 100],
  policies: ["readme", "retrieval", "context-pilot", "prefix-exact", "carry-over"],
  retentions: [DEFAULT_RETENTION],
  budgetRatio: 1.5,
  budgetOf: "all",
  windows: [null],
  histories: ["exact"],
  historyRatio: null,
};
