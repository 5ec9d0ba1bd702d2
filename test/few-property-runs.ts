import { createRequire } from "node:module";
import type * as FastCheck from "fast-check";

/**
 * Takes the place of fast-check in `npm run test:quick`: the same properties with few runs each, whatever number they ask for. The full run
 * takes them all.
 */
const RUNS = 20;
const DEFAULT_RUNS = 100;

const real = createRequire(import.meta.url)("fast-check") as typeof FastCheck;

export default {
  ...real,
  assert: ((property: FastCheck.IRawProperty<unknown>, parameters: FastCheck.Parameters<unknown> = {}) =>
    real.assert(property, {
      ...parameters,
      numRuns: Math.min(parameters.numRuns ?? DEFAULT_RUNS, RUNS),
    })) as typeof real.assert,
};
