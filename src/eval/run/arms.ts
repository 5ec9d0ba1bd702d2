import type { HistoryName } from "../../core/conversation/epoch.js";
import type { ChatMessage, PolicyName, RetentionName } from "../../core/index.js";
import { type ARM_POLICIES, type ArmAnnotations, type ArmDepth, type EvalArm, HAND_BUILT } from "../base/run-record.js";

export type ArmPolicy = (typeof ARM_POLICIES)[number];
export type ArmLayout = EvalArm["layout"];

/** What an evaluation compares. */
export interface ArmChoices {
  readonly layouts: readonly ArmLayout[];
  readonly ks: readonly number[];
  readonly policies: readonly ArmPolicy[];
  /** Null: memprefix's default. Do not apply to prompts that are not memprefix's. */
  readonly annotations: readonly (ArmAnnotations | null)[];
  /** Null: all memories. Apply to prompts that are sent as memprefix composes them. */
  readonly depths: readonly (ArmDepth | null)[];
  /** What conversations keep of injected memories; does not apply to single prompts or to prompts that are not memprefix's. */
  readonly retentions: readonly RetentionName[];
  /** What carry-over may send, as a multiple of the tokens retrieved; does not apply to the other policies. */
  readonly budgetRatios: readonly number[];
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

/** Whether `history_ratio` bounds what it sends. */
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

/** One of each choice, whether it applies or not. */
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

/** The arm of a combination, without what does not apply. */
function armOf({ messages, history, ...given }: Combination, historyRatio: number | null): EvalArm {
  const { layout, k, policy } = given;
  const isOwn = isComposed(policy);
  const isSingle = layout === "single";
  const retention = isOwn && !isSingle ? given.retention : null;
  const own = { messages: messages ?? 0, history, ratio: hasRatio(history) ? historyRatio : null };
  // Where nothing stands in earlier turns, the search's own order needs no line: its default has none.
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

/** How an arm builds its prompts: the parts of its name after its group's. */
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

/** Adaptive depth's part of an arm's name: empty without. */
export function depthLabel(depth: ArmDepth | null): readonly string[] {
  return depth === null ? [] : [`depth from ${depth.firstBlocks} at ${depth.entropyNats} nats`];
}

/** A budget's part of an arm's name: empty without one. */
export function budgetLabel({ budgetRatio }: Pick<EvalArm, "budgetRatio">): readonly string[] {
  return budgetRatio === null ? [] : [`≤${budgetRatio}× on average`];
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
