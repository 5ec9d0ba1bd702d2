/** Whether this run is `npm run test:all`, in which what is long by nature runs whole. */
export const IS_WHOLE = (process.env["PROPERTY_RUNS"] ?? "all") === "all";

/** All of them in a whole run, the first few otherwise. */
export function someOf<T>(all: readonly T[], few: number): readonly T[] {
  return IS_WHOLE ? all : all.slice(0, few);
}
