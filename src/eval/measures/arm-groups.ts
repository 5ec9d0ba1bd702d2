import { groupBy } from "../../core/text/lists.js";
import type { EvalArm } from "../base/run-record.js";
import { budgetLabel } from "../run/arms.js";

/** Arms that differ in nothing but how prompts were built: those to compare with each other. */
export interface ArmGroup<A> {
  readonly title: string;
  readonly arms: readonly A[];
}

/** Groups whatever belongs to arms by layout and k, in their order. */
export function groupArms<A>(arms: readonly A[], armOf: (arm: A) => EvalArm): ArmGroup<A>[] {
  const groups = groupBy(arms, (arm) => {
    const { layout, k } = armOf(arm);
    return `${layout} ${k}`;
  });
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { layout, k } = armOf(first);
    return [{ title: `${layout === "single" ? "Single prompts" : "Conversations"}, k = ${k}`, arms: group }];
  });
}

/** Whether two arms differ in nothing but how prompts were built. */
export function isSameGroup(a: EvalArm, b: EvalArm): boolean {
  return a.layout === b.layout && a.k === b.k;
}

/** How an arm is called among those of its group. */
export function armLabel({ policy, retention, ...budget }: EvalArm): string {
  if (policy === "readme") return "Mem0’s README";
  return [policy, ...budgetLabel(budget), ...(retention === null ? [] : [retention])].join(" ");
}
