import type { TimedSums, UsageGroup, WindowSums } from "../api/usage-log.js";
import { addSums, type GrowingSums, noSums } from "./usage-sums.js";

interface GrowingTimedSums {
  readonly sums: GrowingSums;
  readonly times: Map<number, number>;
}

const nothing = (): GrowingTimedSums => ({ sums: noSums(), times: new Map() });

/** Sums of a window by step and by group, added up from rows of each step and group. */
export class StepTotals {
  readonly #total = nothing();
  readonly #points = new Map<number, GrowingTimedSums>();
  readonly #byGroup = new Map<number, GrowingTimedSums>();

  constructor(private readonly groups: readonly (UsageGroup & { readonly id: number })[]) {}

  add(at: number, group: number, sums: GrowingSums): void {
    for (const part of this.#parts(at, group)) addSums(part.sums, sums);
  }

  time(at: number, group: number, bin: number, prompts: number): void {
    for (const { times } of this.#parts(at, group)) times.set(bin, (times.get(bin) ?? 0) + prompts);
  }

  summed(): { total: TimedSums; points: ReadonlyMap<number, TimedSums>; groups: WindowSums["groups"] } {
    const groups = this.groups.flatMap(({ id, model, engine, layout }) => {
      const sums = this.#byGroup.get(id);
      return sums === undefined ? [] : [{ group: { model, engine, layout }, ...sums }];
    });
    return { total: this.#total, points: this.#points, groups };
  }

  #parts(at: number, group: number): GrowingTimedSums[] {
    const [point, ofGroup] = [this.#points.get(at) ?? nothing(), this.#byGroup.get(group) ?? nothing()];
    this.#points.set(at, point);
    this.#byGroup.set(group, ofGroup);
    return [this.#total, point, ofGroup];
  }
}
