import type { HistoryName } from "../../core/conversation/epoch.js";
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
  /** Carry-over's memory tokens, as a multiple of those retrieved. */
  readonly budgetRatios: readonly number[];
  /** Last messages that a conversation's client sends; null: all. */
  readonly windows: readonly (number | null)[];
  /** What memprefix makes of a window. */
  readonly histories: readonly HistoryName[];
  readonly historyRatio: number | null;
}

function isComposed(policy: ArmPolicy): policy is PolicyName {
  return !HAND_BUILT.some((name) => name === policy);
}

/** Whether `history_ratio` bounds this history. */
export function hasRatio(history: HistoryName): boolean {
  return history !== "exact" && history !== "stored";
}

/** Every combination that makes a different prompt, once. */
export function armsOf(choices: ArmChoices): EvalArm[] {
  const combinations = productOf<Combination>({
    layout: choices.layouts,
    k: choices.ks,
    messages: choices.windows,
    policy: choices.policies,
    budgetRatio: choices.budgetRatios,
    retention: choices.retentions,
    history: choices.histories,
    annotations: choices.annotations,
    depth: choices.depths,
  });
  const arms = combinations.map((combination) => armOf(combination, choices.historyRatio));
  return [...new Map(arms.map((arm) => [arm.id, arm])).values()];
}

/** One value of each choice, whether it applies or not. */
interface Combination extends Pick<EvalArm, "layout" | "k" | "policy" | "annotations" | "depth"> {
  readonly messages: number | null;
  readonly budgetRatio: number;
  readonly retention: RetentionName;
  readonly history: HistoryName;
}

/** Every way to take one value of each list; the last name varies fastest. */
function productOf<T extends object>(lists: { readonly [K in keyof T]: readonly T[K][] }): T[] {
  return Object.entries<readonly unknown[]>(lists).reduce<object[]>(
    (all, [name, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [name]: value }))),
    [{}],
  ) as T[];
}

function armOf({ messages, history, ...given }: Combination, historyRatio: number | null): EvalArm {
  const { layout, k, policy } = given;
  const isOwn = isComposed(policy);
  const isSingle = layout === "single";
  const retention = isOwn && !isSingle ? given.retention : null;
  const own = { messages: messages ?? 0, history, ratio: hasRatio(history) ? historyRatio : null };
  // Without memories in earlier turns, search order needs no annotation: its default has none.
  const isPlain = policy === "retrieval" && (retention === null || retention === "ephemeral");
  const arm = {
    ...{ layout, k, policy, retention },
    budgetRatio: policy === "carry-over" ? given.budgetRatio : null,
    window: isSingle || messages === null ? null : isOwn ? own : { messages, history: null, ratio: null },
    annotations: !isOwn || (given.annotations === "none" && isPlain) ? null : given.annotations,
    depth: isOwn ? given.depth : null,
  };
  return { id: idOf(arm), ...arm };
}

function idOf(arm: Omit<EvalArm, "id">): string {
  const { layout, k, window } = arm;
  const client = window === null ? [] : [`window=${window.messages}`];
  return [layout, `k=${k}`, ...client, ...buildLabels(arm)].join(" ");
}

function buildLabels({ policy, retention, window, annotations, depth, budgetRatio }: Omit<EvalArm, "id">): string[] {
  return [
    policy,
    ...budgetLabel({ budgetRatio }),
    ...(retention === null ? [] : [retention]),
    ...(window?.history == null ? [] : [window.history]),
    ...(window?.ratio == null ? [] : [`ratio ${window.ratio}`]),
    ...(annotations === null ? [] : [`annotations=${annotations}`]),
    ...depthLabel(depth),
  ];
}

export function depthLabel(depth: ArmDepth | null): readonly string[] {
  return depth === null ? [] : [`depth from ${depth.firstBlocks} at ${depth.entropyNats} nats`];
}

export function budgetLabel({ budgetRatio }: Pick<EvalArm, "budgetRatio">): readonly string[] {
  return budgetRatio === null ? [] : [`≤${budgetRatio}× on average`];
}

/**
 * The messages that an arm's client sends before its question: none in single prompts; in a conversation all, those of its window, which
 * counts the question, or with `stored` the last answer alone.
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
