import { readFileSync } from "node:fs";
import { z } from "zod";
import { OPTIONAL_PACKAGES } from "../src/cli/package.js";

/*
 * Which of the locked packages memprefix runs with: what `npm install memprefix` brings, and the optional parts that memprefix loads itself. npm's
 * own marks do not say: an optional part is a development dependency of the clone.
 */

const names = z.record(z.string(), z.string()).default({});
const locked = z.object({
  name: z.string().optional(),
  version: z.string(),
  license: z.string().optional(),
  integrity: z.string().optional(),
  dependencies: names,
  optionalDependencies: names,
  peerDependencies: names,
  peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean().optional() })).default({}),
});
const lock = z.object({ packages: z.record(z.string(), z.unknown()) });

/** A package of the lock file. */
export type LockedPackage = z.output<typeof locked>;

/** One that memprefix runs with. */
export interface ShippedPackage {
  readonly name: string;
  readonly locked: LockedPackage;
  /** Whether every way to it leads through a package that may be absent. */
  readonly isOptional: boolean;
}

/** Built into the dashboard's page, so that they are in the package though nothing installs them. */
export const IN_PAGE = ["htm", "preact", "uplot"];

const FOLDER = "node_modules/";
const { packages } = lock.parse(JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")));

const at = (path: string): LockedPackage => locked.parse(packages[path]);

/** memprefix itself, as it is locked. */
export const ROOT_PACKAGE: LockedPackage = at("");

/** The packages, by their paths in `node_modules`. */
export function shippedPackages(): ReadonlyMap<string, ShippedPackage> {
  const found = new Map<string, ShippedPackage>();
  const add = (from: string, name: string, isOptional: boolean): void => {
    const path = pathOf(from, name);
    // Of an optional dependency for other machines, or a peer that nobody installs.
    if (path === null) return;
    const known = found.get(path);
    if (known !== undefined && (isOptional || !known.isOptional)) return;
    const one = at(path);
    found.set(path, {
      name: one.name ?? path.slice(path.lastIndexOf(FOLDER) + FOLDER.length),
      locked: one,
      isOptional,
    });
    const needed = Object.keys(one.peerDependencies).filter(
      (peer) => one.peerDependenciesMeta[peer]?.optional !== true,
    );
    for (const inner of [...Object.keys(one.dependencies), ...needed]) {
      add(path, inner, isOptional || inner in one.optionalDependencies);
    }
    for (const inner of Object.keys(one.optionalDependencies)) add(path, inner, true);
  };
  for (const name of Object.keys(ROOT_PACKAGE.dependencies)) add("", name, false);
  for (const name of IN_PAGE) add("", name, false);
  for (const name of Object.values(OPTIONAL_PACKAGES).flat()) add("", name, true);
  return found;
}

/** Where a package's import of another leads: up through the folders, as Node looks. */
function pathOf(from: string, name: string): string | null {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf(`/${FOLDER}`)))) {
    const path = `${folder === "" ? "" : `${folder}/`}${FOLDER}${name}`;
    if (packages[path] !== undefined) return path;
    if (folder === "") return null;
  }
}
