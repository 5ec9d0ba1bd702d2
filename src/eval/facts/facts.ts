import { z } from "zod";
import { alignedTable } from "../base/aligned-table.js";
import { bootstrapMean, type Interval } from "../measures/bootstrap.js";
import type { ScoreAnswers } from "./answer-odds.js";
import type { FactCase } from "./fact-cases.js";
import { type ComposeTurn, type FactPrompt, falsePrompts, updatePrompts } from "./fact-prompts.js";

/** By prompt, what its answers scored. */
const oddsByPrompt = z.record(z.string(), z.object({ logOdds: z.number(), promptTokens: z.int() }));
type OddsByPrompt = z.output<typeof oddsByPrompt>;

/** What one case scored; a line of the file `--out`. */
export const factRow = z.object({
  model: z.string(),
  case: z.int(),
  updates: oddsByPrompt,
  /** Only every second case states a false value, because there are more prompts of it. */
  claims: oddsByPrompt.optional(),
});
export type FactRow = z.output<typeof factRow>;

const CLAIMED_EVERY = 2;

export interface FactParts {
  readonly model: string;
  /** Opens a conversation of its own. */
  readonly open: () => ComposeTurn;
  readonly score: ScoreAnswers;
}

/** Scores both answers after each prompt of a case. Throws what `score` throws. */
export async function measureFact(at: number, fact: FactCase, { model, open, score }: FactParts): Promise<FactRow> {
  const scored = async ({ name, messages }: FactPrompt) => [name, await score(messages, fact.answers)] as const;
  const measured = async ([first, ...others]: readonly FactPrompt[]) => {
    // The first puts what all prompts begin with into the cache.
    const found = first === undefined ? [] : [await scored(first)];
    return Object.fromEntries([...found, ...(await Promise.all(others.map(scored)))]);
  };
  const updates = await measured(await updatePrompts(fact, open));
  if (at % CLAIMED_EVERY !== 0) return { model, case: at, updates };
  return { model, case: at, updates, claims: await measured(await falsePrompts(fact, open)) };
}

/** Which prompt each one is compared with. */
const CLAIMS: readonly (readonly [name: string, baseline: string])[] = [
  ["repeated by the line", "once"],
  ["twice", "once"],
  ["marked (unverified)", "once"],
  ["kept", "never"],
  ["kept, and repeated by the line", "kept"],
  ["kept, of an untrusted origin", "kept"],
];

const THREE_DIGITS = new Intl.NumberFormat("en", { minimumSignificantDigits: 3, maximumSignificantDigits: 3 });

/** Two Markdown tables, with 95 % intervals over cases, paired by case. */
export function factTables(rows: readonly FactRow[]): string {
  const updates = rows.map((row) => row.updates);
  const claims = rows.flatMap((row) => (row.claims === undefined ? [] : [row.claims]));
  const [baseline = "", ...others] = Object.keys(updates[0] ?? {});
  const preferred = (name: string) => {
    const share = updates.filter((odds) => (odds[name]?.logOdds ?? 0) > 0).length / updates.length;
    return [name, String(updates.length), `${Math.round(100 * share)} %`];
  };
  const ofUpdates = others.map((name) => [
    ...preferred(name),
    plusMinus(difference(updates, name, baseline, "logOdds")),
    signed(difference(updates, name, baseline, "promptTokens").value, 1),
  ]);
  const ofClaims = CLAIMS.map(([name, other]) => {
    const { value, low, high } = difference(claims, name, other, "logOdds");
    // The odds of the false answer are the inverse.
    const [factor, least, most] = [-value, -high, -low].map((log) => THREE_DIGITS.format(Math.exp(log)));
    return [name, other, String(claims.length), `× ${factor}`, `${least} to ${most}`];
  });
  return [
    "An old value in an earlier turn, a new one in the newest: log odds of the new answer over the old",
    alignedTable(
      ["prompt", "cases", "new preferred", "log odds against no line", "tokens"],
      [[...preferred(baseline), "–", "–"], ...ofUpdates],
    ),
    "A false value beside two true ones: odds of the false answer",
    alignedTable(["the false memory", "against", "cases", "factor", "95 %"], ofClaims, (column) => column < 2),
  ].join("\n\n");
}

function difference(
  measured: readonly OddsByPrompt[],
  name: string,
  baseline: string,
  of: "logOdds" | "promptTokens",
): Interval {
  const differences = measured.map((odds) => (odds[name]?.[of] ?? Number.NaN) - (odds[baseline]?.[of] ?? Number.NaN));
  return bootstrapMean(differences) ?? { value: Number.NaN, low: Number.NaN, high: Number.NaN };
}

function plusMinus({ value, low, high }: Interval): string {
  return `${signed(value, 2)} (${signed(low, 2)} to ${signed(high, 2)})`;
}

function signed(value: number, digits: number): string {
  const text = Math.abs(value).toFixed(digits);
  return `${value < 0 ? "−" : "+"}${text}`;
}
