import { groupBy, largest } from "../../core/text/collections.js";
import { type EvalArm, isAnswered, type QuestionRecord } from "../base/run-record.js";
import { armLabel, groupArms } from "../measures/arm-summary.js";
import { NOT_MEASURED, percent } from "../measures/measured.js";
import { type Markup, markup } from "./html.js";
import type { ReportContent } from "./report-content.js";

/** Turns averaged into one point of a line. */
const WINDOW = 9;
/** Lines of a panel besides the baseline's: the style sheet has this many colours and dashes. */
const MOST_LINES = 6;

interface ShareLine {
  readonly arm: EvalArm;
  readonly turns: readonly TurnShare[];
  /** Class of the style sheet that sets colour and dashes. */
  readonly style: string;
}

/** The cached share over turns, one panel per group of arms; null if nothing was measured. */
export function cachedShareChart({ run, records }: ReportContent): Markup | null {
  const byArm = groupBy(records, ({ arm }) => arm);
  const panels = groupArms(run.arms, (arm) => arm).flatMap(({ title, arms }, at) => {
    const measured = arms.flatMap((arm) => {
      const turns = cachedOverTurns(byArm.get(arm.id) ?? [], WINDOW);
      return turns.length === 0 ? [] : [{ arm, turns }];
    });
    const others = measured.filter(({ arm }) => arm.policy !== "readme").slice(0, MOST_LINES);
    const lines = [
      ...measured.filter(({ arm }) => arm.policy === "readme").map((line) => ({ ...line, style: "base" })),
      ...others.map((line, nth) => ({ ...line, style: `s${nth}` })),
    ];
    return lines.length === 0
      ? []
      : [
          markup`<div class="panel"><h3>${title}</h3>${shareChart(`turns-${at}`, title, lines)}</div>
`,
        ];
  });
  if (panels.length === 0) return null;
  return markup`<figure>
<figcaption><strong>Cached share over turns.</strong> <span>Cached tokens ÷ prompt tokens, averaged over ${WINDOW} neighbouring questions and all conversations. Higher is better. A panel has at most ${MOST_LINES} lines beside Mem0’s README.</span></figcaption>
<div class="panels">
${panels}</div>
</figure>
`;
}

/** A narrow phone's pixels, so that text keeps its size there; wider screens show charts side by side. */
const [WIDTH, HEIGHT] = [344, 210];
const [LEFT, RIGHT, TOP, BOTTOM] = [42, 8, 10, 34];
const SHARES = [0, 0.25, 0.5, 0.75, 1];

function shareChart(id: string, group: string, lines: readonly ShareLine[]): Markup {
  const last = largest(
    lines.flatMap(({ turns }) => turns.map(({ turn }) => turn)),
    1,
  );
  const end = WIDTH - RIGHT;
  const x = (turn: number) => tenth(LEFT + (turn / last) * (end - LEFT));
  const y = (share: number) => tenth(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM));
  const described = lines.map(({ arm, turns }) => {
    const at = turns.at(-1);
    return `${armLabel(arm)}: ${at === undefined ? NOT_MEASURED : `${percent(at.share)} at the end`}`;
  });
  return markup`<ul class="legend">${lines.map(
    ({ arm, style }) =>
      markup`<li><svg class="key" viewBox="0 0 28 8" aria-hidden="true"><line class="line ${style}" x1="1" x2="27" y1="4" y2="4"/></svg>${armLabel(arm)}</li>
`,
  )}</ul>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="${id}-t ${id}-d">
<title id="${id}-t">Cached share over turns, ${group}</title>
<desc id="${id}-d">${described.join("; ")}</desc>
${SHARES.map(
  (share) => markup`<line class="grid" x1="${LEFT}" x2="${end}" y1="${y(share)}" y2="${y(share)}"/>
<text class="tick" x="${LEFT - 6}" y="${y(share - 0.02)}" text-anchor="end">${100 * share} %</text>
`,
)}${axisTicks(last).map(
  (turn) => markup`<text class="tick" x="${x(turn)}" y="${HEIGHT - BOTTOM + 14}" text-anchor="middle">${turn}</text>
`,
)}${lines.map(
  ({ turns, style }) =>
    markup`<polyline class="line ${style}" points="${turns.map(({ turn, share }) => `${x(turn)},${y(share)}`).join(" ")}"/>
`,
)}<text class="tick" x="${end}" y="${HEIGHT - 4}" text-anchor="end">question of the conversation</text>
</svg>
`;
}

/** A tenth of a unit is finer than anybody sees. */
function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Round whole ticks from 0 to `max`, at most seven. */
function axisTicks(max: number): number[] {
  const power = 10 ** Math.floor(Math.log10(max / 4));
  const step = Math.max(1, ([1, 2, 5, 10].find((factor) => factor * power * 6 >= max) ?? 10) * power);
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, index) => index * step);
}

export interface TurnShare {
  /** Position of the question in its conversation, from 1. */
  readonly turn: number;
  readonly share: number;
}

/** More points of a line are not visible. */
const MOST_POINTS = 120;

/**
 * The cached share of an arm over a conversation's turns: cached ÷ prompt tokens of all conversations' prompts up to `window` ÷ 2 turns away.
 * Warm-ups, failures and unmeasured prompts take a turn but do not count.
 */
export function cachedOverTurns(records: readonly QuestionRecord[], window: number): TurnShare[] {
  const sums: { cached: number; prompt: number }[] = [];
  for (const asked of groupBy(records, ({ conversation }) => conversation).values()) {
    const inOrder = asked.toSorted((a, b) => a.question - b.question);
    for (const [turn, record] of inOrder.entries()) {
      const sum = sums[turn] ?? { cached: 0, prompt: 0 };
      sums[turn] = sum;
      if (!isAnswered(record) || record.isWarmUp) continue;
      if (record.promptTokens === null || record.cachedTokens === null) continue;
      sum.cached += record.cachedTokens;
      sum.prompt += record.promptTokens;
    }
  }
  const step = Math.max(1, Math.ceil(sums.length / MOST_POINTS));
  const reach = Math.floor(window / 2);
  return sums.flatMap((_, turn) => {
    if (turn % step !== 0 && turn !== sums.length - 1) return [];
    const near = sums.slice(Math.max(0, turn - reach), turn + reach + 1);
    const prompt = near.reduce((total, sum) => total + sum.prompt, 0);
    const cached = near.reduce((total, sum) => total + sum.cached, 0);
    return prompt === 0 ? [] : [{ turn: turn + 1, share: cached / prompt }];
  });
}
