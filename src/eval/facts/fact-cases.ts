/* facts: a model's choice between an old and a new value of a fact. The cases are synthetic and of our own writing. */

import facts from "./facts.json" with { type: "json" };

/** A person's attribute with two values, among other memories of that person. */
export interface FactCase {
  readonly person: string;
  readonly question: string;
  /** Complete short answers with each value. */
  readonly answers: { readonly old: string; readonly new: string };
  readonly old: string;
  /** As a new memory says it: in the same words, in others, or as a change. */
  readonly new: string;
  /** The new value in two wordings, and the old one as a false memory says it. */
  readonly true: readonly [string, string];
  readonly false: string;
  /** Unrelated memories. */
  readonly others: readonly string[];
}

const OTHERS = 18;
const WORDINGS = ["stated", "paraphrased", "changed", "stated"] as const;

/** One case of each attribute, then another of each, with other values, people and wordings. */
export const FACT_CASES: readonly FactCase[] = WORDINGS.flatMap((wording, round) =>
  facts.attributes.map((attribute, at) => factCase(attribute, wording, round, at)),
);

function factCase(
  attribute: (typeof facts.attributes)[number],
  wording: (typeof WORDINGS)[number],
  round: number,
  at: number,
): FactCase {
  const person = cyclic(facts.people, 5 * round + at);
  const [old, now] = [cyclic(attribute.values, 2 * round), cyclic(attribute.values, 2 * round + 1)];
  const said = (form: string, value = "") => form.replaceAll("{person}", person).replaceAll("{value}", value);
  return {
    person,
    question: said(attribute.question),
    answers: { old: said(attribute.answer, old), new: said(attribute.answer, now) },
    old: said(attribute.stated, old),
    new: said(attribute[wording], now),
    true: [said(attribute.stated, now), said(attribute.paraphrased, now)],
    false: said(attribute.stated, old),
    others: Array.from({ length: OTHERS }, (_, n) => said(cyclic(facts.others, 7 * at + 11 * round + n))),
  };
}

function cyclic(list: readonly string[], at: number): string {
  return list[at % list.length] ?? "";
}
