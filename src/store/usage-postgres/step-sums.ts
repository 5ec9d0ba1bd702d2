import { addSums, binOf, type GrowingSums, noSums, pricedCauses, sumsOf, type Valued } from "../usage/usage-sums.js";
import { STEPS_MS } from "../usage/usage-totals.js";

/** A step of a window. A group is one tenant's. */
export interface StepKey {
  readonly tenant: string;
  readonly step: number;
  readonly start: number;
  readonly groupId: number;
}

/** What a batch adds to the sums over time, each once however many prompts change it. */
export class StepSums {
  readonly steps = new Map<string, StepKey & { readonly sums: GrowingSums }>();
  readonly times = new Map<string, StepKey & { readonly bin: number; prompts: number }>();
  readonly causes = new Map<
    string,
    StepKey & { readonly cause: string; prompts: number; tokens: number; money: number }
  >();

  /** Counts a prompt in, or out (`sign` -1). */
  add({ tenant, groupId }: Pick<StepKey, "tenant" | "groupId">, at: number, value: Valued, sign: 1 | -1): void {
    const added = sumsOf(value);
    const bin = binOf(value.usage);
    const caused = pricedCauses(value);
    for (const step of Object.values(STEPS_MS)) {
      const key = { tenant, step, start: at - (at % step), groupId };
      const name = `${step},${key.start},${groupId}`;
      addSums(made(this.steps, name, () => ({ ...key, sums: noSums() })).sums, added, sign);
      if (bin !== null) made(this.times, `${name},${bin}`, () => ({ ...key, bin, prompts: 0 })).prompts += sign;
      for (const { cause, tokens, money } of caused) {
        const of = made(this.causes, `${name},${cause}`, () => ({ ...key, cause, prompts: 0, tokens: 0, money: 0 }));
        of.prompts += sign;
        of.tokens += sign * tokens;
        of.money += sign * money;
      }
    }
  }
}

function made<T>(all: Map<string, T>, name: string, make: () => T): T {
  const known = all.get(name);
  if (known !== undefined) return known;
  const one = make();
  all.set(name, one);
  return one;
}
