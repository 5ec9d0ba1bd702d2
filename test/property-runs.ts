import { createRequire } from "node:module";
import type * as FastCheck from "fast-check";

/**
 * Takes the place of fast-check in every test: the same properties on the same inputs, with the runs that `PROPERTY_RUNS` gives them
 * (`vitest.config.ts`): `all` that a property asks for, a `fifth` of them up to a hundred, or a `few`.
 */
const DEFAULT_RUNS = 100;
const RUNS: Readonly<Record<string, (asked: number) => number>> = {
  all: (asked) => asked,
  fifth: (asked) => Math.min(Math.ceil(asked / 5), 100),
  few: (asked) => Math.min(Math.ceil(asked / 5), 20),
};

const kind = process.env["PROPERTY_RUNS"] ?? "all";
const runs = RUNS[kind];
if (runs === undefined) throw new RangeError(`PROPERTY_RUNS is ${kind}, not one of ${Object.keys(RUNS).join(", ")}`);

const real = createRequire(import.meta.url)("fast-check") as typeof FastCheck;

export default {
  ...real,
  assert: ((property: FastCheck.IRawProperty<unknown>, parameters: FastCheck.Parameters<unknown> = {}) =>
    real.assert(property, { ...parameters, numRuns: runs(parameters.numRuns ?? DEFAULT_RUNS) })) as typeof real.assert,
};
