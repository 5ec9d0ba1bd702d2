import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";

const PROJECT = resolve(import.meta.dirname, "../..");
const names = z.record(z.string(), z.string()).transform(Object.keys);
const { dependencies, devDependencies, peerDependencies } = z
  .object({ dependencies: names, devDependencies: names, peerDependencies: names })
  .parse(JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")));

/** Peers that a clone installs; the others are the frameworks of adapters. */
const optional = peerDependencies.filter((name) => devDependencies.includes(name));

it("docs/internals/dependencies.md has a reason for every package that users install, and names no other", () => {
  const page = readFileSync(join(PROJECT, "docs/internals/dependencies.md"), "utf8");
  const rows = [...page.matchAll(/^\| `([^`]+)` \| (\S.*) \|$/gm)].map(([, name]) => name);
  expect(rows.toSorted()).toEqual([...dependencies, ...optional].toSorted());
});
