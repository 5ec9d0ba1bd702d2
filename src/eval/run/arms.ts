import { DEFAULT_RETENTION, type RetentionName } from "../../core/index.js";
import type { ARM_POLICIES, EvalArm } from "../base/run-record.js";

export type ArmPolicy = (typeof ARM_POLICIES)[number];
export type ArmLayout = EvalArm["layout"];

/** What an evaluation compares. */
export interface ArmChoices {
  readonly layouts: readonly ArmLayout[];
  readonly ks: readonly number[];
  readonly policies: readonly ArmPolicy[];
  /** What conversations keep of injected memories; does not apply to single prompts or to Mem0's README's. */
  readonly retentions: readonly RetentionName[];
  /** What carry-over may send, as a multiple of the tokens retrieved; does not apply to the other policies. */
  readonly budgetRatio: number;
  readonly budgetOf: EvalArm["budgetOf"];
}

/** Every combination that makes a different prompt, once. */
export function armsOf({ layouts, ks, policies, retentions, budgetRatio, budgetOf }: ArmChoices): EvalArm[] {
  const arms = layouts.flatMap((layout) =>
    ks.flatMap((k) =>
      policies.flatMap((policy) => {
        const keeps = layout === "conversation" && policy !== "readme" ? retentions : [null];
        const budget = policy === "carry-over" ? budgetRatio : null;
        return keeps.map((retention) => armOf(layout, k, policy, retention, budget, budgetOf));
      }),
    ),
  );
  return [...new Map(arms.map((arm) => [arm.id, arm])).values()];
}

function armOf(
  layout: ArmLayout,
  k: number,
  policy: ArmPolicy,
  retention: RetentionName | null,
  budgetRatio: number | null,
  budgetOf: EvalArm["budgetOf"],
): EvalArm {
  const budget = { budgetRatio, budgetOf };
  const id = [layout, `k=${k}`, policy, ...budgetLabel(budget), ...(retention === null ? [] : [retention])].join(" ");
  return { id, layout, k, policy, retention, ...budget };
}

/** A budget's part of an arm's name: empty without one. */
export function budgetLabel({ budgetRatio, budgetOf }: Pick<EvalArm, "budgetRatio" | "budgetOf">): readonly string[] {
  return budgetRatio === null ? [] : [`≤${budgetRatio}×${budgetOf === "all" ? " on average" : ""}`];
}

/** The default comparison. */
export const DEFAULT_ARMS: ArmChoices = {
  layouts: ["single"],
  ks: [20, 100],
  policies: ["readme", "retrieval", "context-pilot", "prefix-exact", "carry-over"],
  retentions: [DEFAULT_RETENTION],
  budgetRatio: 1.5,
  budgetOf: "all",
};
