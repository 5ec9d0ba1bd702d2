import { keptIn } from "../../core/text/collections.js";
import { alignedTable } from "../base/aligned-table.js";
import { bootstrapMean, type Interval } from "../measures/bootstrap.js";
import type { AnswerOdds, ScoreAnswers } from "./answer-odds.js";
import type { FactCase } from "./fact-cases.js";
import { type ComposeTurn, type FactPrompt, falsePrompts, updatePrompts } from "./fact-prompts.js";

export interface FactParts {
  readonly cases: readonly FactCase[];
  /** Opens a conversation of its own. */
  readonly open: () => ComposeTurn;
  readonly score: ScoreAnswers;
}

/** By prompt, a value for each case. */
type Measured = Map<string, AnswerOdds[]>;

export interface FactResults {
  readonly updates: Measured;
  readonly claims: Measured;
}

/** Only every second case states a false value, because there are more prompts of it. */
const CLAIMED_EVERY = 2;

/** Scores both answers after each prompt of each case. Yields all results so far after each case. */
export async function* measureFacts({ cases, open, score }: FactParts): AsyncGenerator<FactResults> {
  const results: FactResults = { updates: new Map(), claims: new Map() };
  for (const [at, fact] of cases.entries()) {
    const measure = async ([first, ...others]: readonly FactPrompt[]) => {
      const scored = async ({ name, messages }: FactPrompt) => [name, await score(messages, fact.answers)] as const;
      // The first puts what all prompts begin with into the cache.
      const found = first === undefined ? [] : [await scored(first)];
      return [...found, ...(await Promise.all(others.map(scored)))];
    };
    const updates = await measure(await updatePrompts(fact, open));
    const claims = at % CLAIMED_EVERY === 0 ? await measure(await falsePrompts(fact, open)) : [];
    for (const [name, odds] of updates) keptIn(results.updates, name, () => []).push(odds);
    for (const [name, odds] of claims) keptIn(results.claims, name, () => []).push(odds);
    yield results;
  }
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

/** Two Markdown tables, with 95 % intervals over cases, paired by case. */
export function factTables({ updates, claims }: FactResults): string {
  const [baseline] = updates.keys();
  const ofUpdates = [...updates].map(([name, all]) => {
    const share = all.filter(({ logOdds }) => logOdds > 0).length / all.length;
    const isBaseline = name === baseline;
    return [
      name,
      String(all.length),
      `${Math.round(100 * share)} %`,
      isBaseline ? "–" : plusMinus(difference(updates, name, baseline ?? "", "logOdds")),
      isBaseline ? "–" : signed(difference(updates, name, baseline ?? "", "promptTokens").value, 1),
    ];
  });
  const ofClaims = CLAIMS.map(([name, other]) => {
    const { value, low, high } = difference(claims, name, other, "logOdds");
    // The odds of the false answer are the inverse.
    const [factor, least, most] = [-value, -high, -low].map((log) => Math.exp(log).toPrecision(3));
    return [name, other, String(claims.get(name)?.length ?? 0), `× ${factor}`, `${least} to ${most}`];
  });
  return [
    "An old value in an earlier turn, a new one in the newest: log odds of the new answer over the old",
    alignedTable(["prompt", "cases", "new preferred", "log odds against no line", "tokens"], ofUpdates),
    "A false value beside two true ones: odds of the false answer",
    alignedTable(["the false memory", "against", "cases", "factor", "95 %"], ofClaims, (column) => column < 2),
  ].join("\n\n");
}

function difference(measured: Measured, name: string, baseline: string, of: "logOdds" | "promptTokens"): Interval {
  const others = measured.get(baseline) ?? [];
  const differences = (measured.get(name) ?? []).map((one, at) => one[of] - (others[at]?.[of] ?? Number.NaN));
  return bootstrapMean(differences) ?? { value: Number.NaN, low: Number.NaN, high: Number.NaN };
}

function plusMinus({ value, low, high }: Interval): string {
  return `${signed(value, 2)} (${signed(low, 2)} to ${signed(high, 2)})`;
}

function signed(value: number, digits: number): string {
  const text = Math.abs(value).toFixed(digits);
  return `${value < 0 ? "−" : "+"}${text}`;
}
