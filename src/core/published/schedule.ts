import { groupBy } from "../text/lists.js";

/**
 * An execution order in which requests that share a prefix run back to back (Alg. 5): grouped by the first step of their search paths,
 * larger groups first; within a group longer paths first, else input order. A request without a path is a group of its own. Takes one path
 * per request; returns input indices in execution order.
 */
export function schedule(searchPaths: readonly (readonly number[])[]): number[] {
  const requests = searchPaths.map((path, input) => ({ path, input }));
  const groups = [...groupBy(requests, ({ path, input }) => path[0] ?? `alone ${input}`).values()];
  return groups
    .sort((a, b) => b.length - a.length)
    .flatMap((group) => group.sort((a, b) => b.path.length - a.path.length).map(({ input }) => input));
}
