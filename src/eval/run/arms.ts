import type { ChatMessage, PolicyName, RetentionName } from "../../core/index.js";
import { type ARM_POLICIES, type ArmAnnotations, type ArmDepth, type EvalArm, HAND_BUILT } from "../base/run-record.js";

export type ArmPolicy = (typeof ARM_POLICIES)[number];
export type ArmLayout = EvalArm["layout"];

/** The values that an evaluation compares; each applies only where it changes the prompt. Null: memprefix's default. */
export interface ArmChoices {
  readonly layouts: readonly ArmLayout[];
  readonly ks: readonly number[];
  readonly policies: readonly ArmPolicy[];
  readonly annotations: readonly (ArmAnnotations | null)[];
  /** Null: all memories. */
  readonly depths: readonly (ArmDepth | null)[];
  readonly retentions: readonly RetentionName[];
  /** Last messages that a conversation's client sends; null: all. */
  readonly windows: readonly (number | null)[];
}

function isComposed(policy: ArmPolicy): policy is PolicyName {
  return !HAND_BUILT.some((name) => name === policy);
}

/** Every combination that makes a different prompt, once. */
export function armsOf(choices: ArmChoices): EvalArm[] {
  const arms = productOf<Omit<EvalArm, "id">>({
    layout: choices.layouts,
    k: choices.ks,
    window: choices.windows,
    policy: choices.policies,
    retention: choices.retentions,
    annotations: choices.annotations,
    depth: choices.depths,
  }).map(armOf);
  return [...new Map(arms.map((arm) => [arm.id, arm])).values()];
}

/** Every way to take one value of each list; the last name varies fastest. */
function productOf<T extends object>(lists: { readonly [K in keyof T]: readonly T[K][] }): T[] {
  return Object.entries<readonly unknown[]>(lists).reduce<object[]>(
    (all, [name, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  ) as T[];
}

function armOf({ layout, k, policy, ...given }: Omit<EvalArm, "id">): EvalArm {
  const isOwn = isComposed(policy);
  const isSingle = layout === "single";
  const retention = isOwn && !isSingle ? given.retention : null;
  // Without memories in earlier turns, search order needs no annotation: its default has none.
  const isPlain = policy === "retrieval" && (retention === null || retention === "ephemeral");
  const arm = {
    ...{ layout, k, policy, retention },
    window: isSingle ? null : given.window,
    annotations: !isOwn || (given.annotations === "none" && isPlain) ? null : given.annotations,
    depth: isOwn ? given.depth : null,
  };
  return { id: idOf(arm), ...arm };
}

function idOf({ layout, k, window, policy, retention, annotations, depth }: Omit<EvalArm, "id">): string {
  return [
    ...[layout, `k=${k}`],
    ...(window === null ? [] : [`window=${window}`]),
    policy,
    ...(retention === null ? [] : [retention]),
    ...(annotations === null ? [] : [`annotations=${annotations}`]),
    ...depthLabel(depth),
  ].join(" ");
}

export function depthLabel(depth: ArmDepth | null): readonly string[] {
  if (depth === null) return [];
  return [`depth from ${depth.firstBlocks} at ${depth.entropyNats} nats${depth.isOneByOne ? " one by one" : ""}`];
}

/** The messages that an arm's client sends before its question. */
export function historySent(
  history: readonly ChatMessage[],
  { layout, window }: Pick<EvalArm, "layout" | "window">,
): readonly ChatMessage[] {
  if (layout === "single") return [];
  // A window counts the question.
  return window === null ? history : history.slice(Math.max(0, history.length - window + 1));
}
