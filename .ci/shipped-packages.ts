import { readFileSync } from "node:fs";
import { z } from "zod";
import { OPTIONAL_PACKAGES } from "../src/cli/package.js";

/*
 * Which of the locked packages memprefix runs with: what `npm install memprefix` brings, and the optional parts that memprefix loads itself. npm's
 * own marks do not say: an optional part is a development dependency of the clone.
 */

const names = z.record(z.string(), z.string()).default({});
const locked = z.object({
  dependencies: names,
  optionalDependencies: names,
  peerDependencies: names,
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean().optional() })).default({}),
});
const lock = z.object({ packages: z.record(z.string(), z.unknown()) });

/** Built into the dashboard's page, so that they are in the package though nothing installs them. */
export const IN_PAGE = ["htm", "preact", "uplot"];

const FOLDER = "node_modules/";
const { packages } = lock.parse(JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")));

/** Paths in `node_modules` of the packages that memprefix runs with. */
export function shippedPackages(): ReadonlySet<string> {
  const found = new Set<string>();
  const addAll = (from: string, wanted: readonly string[]): void => {
    for (const name of wanted) {
      const path = pathOf(from, name);
      // Null: an optional dependency for other machines, or a peer that is not installed.
      if (path === null || found.has(path)) continue;
      found.add(path);
      addAll(path, neededBy(path));
    }
  };
  const root = locked.parse(packages[""]);
  addAll("", [...Object.keys(root.dependencies), ...IN_PAGE, ...Object.values(OPTIONAL_PACKAGES).flat()]);
  return found;
}

function neededBy(path: string): readonly string[] {
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = locked.parse(packages[path]);
  const peers = Object.keys(peerDependencies).filter((peer) => peerDependenciesMeta[peer]?.optional !== true);
  return [...Object.keys(dependencies), ...Object.keys(optionalDependencies), ...peers];
}

/** Where a package's import of another leads: up through the folders, as Node looks. */
function pathOf(from: string, name: string): string | null {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf(`/${FOLDER}`)))) {
    const path = `${folder === "" ? "" : `${folder}/`}${FOLDER}${name}`;
    if (packages[path] !== undefined) return path;
    if (folder === "") return null;
  }
}
