import type { ChatMessage } from "../../core/index.js";
import { keptIn } from "../../core/text/collections.js";
import { alignedTable } from "../base/aligned-table.js";
import { bootstrapMean, type Interval } from "../measures/bootstrap.js";
import type { FactCase } from "./fact-cases.js";
import { type ComposeTurn, type FactPrompt, falsePrompts, updatePrompts } from "./fact-prompts.js";

export interface FactParts {
  readonly cases: readonly FactCase[];
  /** Opens a conversation of its own. */
  readonly open: () => ComposeTurn;
  /** −ln p of an answer after a prompt, and the prompt's tokens. */
  readonly score: (messages: readonly ChatMessage[], answer: string) => Promise<{ nats: number; promptTokens: number }>;
  readonly signal: AbortSignal;
  readonly step: () => void;
}

/** By prompt, a value for each case. */
type Measured = Map<string, { readonly logOdds: number; readonly tokens: number }[]>;

export interface FactResults {
  readonly updates: Measured;
  readonly claims: Measured;
}

/** Only every second case states a false value, because there are more prompts of it. */
const CLAIMED_EVERY = 2;

/** Scores both answers after each prompt of each case, until the signal. */
export async function measureFacts(parts: FactParts): Promise<FactResults> {
  const { cases, open, signal, step } = parts;
  const results: FactResults = { updates: new Map(), claims: new Map() };
  try {
    for (const [at, fact] of cases.entries()) {
      await measure(parts, fact, await updatePrompts(fact, open), results.updates);
      if (at % CLAIMED_EVERY === 0) await measure(parts, fact, await falsePrompts(fact, open), results.claims);
      step();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return results;
}

async function measure({ score }: FactParts, fact: FactCase, prompts: readonly FactPrompt[], into: Measured) {
  for (const { name, messages } of prompts) {
    const old = await score(messages, fact.answers.old);
    const now = await score(messages, fact.answers.new);
    keptIn(into, name, () => []).push({ logOdds: old.nats - now.nats, tokens: now.promptTokens });
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
export function factTables({ updates, claims }: FactResults, seed: number): string {
  const [baseline] = updates.keys();
  const ofUpdates = [...updates].map(([name, all]) => {
    const share = all.filter(({ logOdds }) => logOdds > 0).length / all.length;
    const isBaseline = name === baseline;
    return [
      name,
      String(all.length),
      `${Math.round(100 * share)} %`,
      isBaseline ? "–" : plusMinus(difference(updates, name, baseline ?? "", "logOdds", seed)),
      isBaseline ? "–" : signed(difference(updates, name, baseline ?? "", "tokens", seed).value, 1),
    ];
  });
  const ofClaims = CLAIMS.map(([name, other]) => {
    const { value, low, high } = difference(claims, name, other, "logOdds", seed);
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

function difference(
  measured: Measured,
  name: string,
  baseline: string,
  of: "logOdds" | "tokens",
  seed: number,
): Interval {
  const others = measured.get(baseline) ?? [];
  const differences = (measured.get(name) ?? []).map((one, at) => one[of] - (others[at]?.[of] ?? Number.NaN));
  return bootstrapMean(differences, { seed }) ?? { value: Number.NaN, low: Number.NaN, high: Number.NaN };
}

function plusMinus({ value, low, high }: Interval): string {
  return `${signed(value, 2)} (${signed(low, 2)} to ${signed(high, 2)})`;
}

function signed(value: number, digits: number): string {
  const text = Math.abs(value).toFixed(digits);
  return `${value < 0 ? "−" : "+"}${text}`;
}
