import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";

const PROJECT = resolve(import.meta.dirname, "../..");
const names = z.record(z.string(), z.string()).transform(Object.keys);
const { dependencies, devDependencies } = z
  .object({ dependencies: names, devDependencies: names })
  .parse(JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")));

it("docs/internals/dependencies.md has a reason for every dependency, and names no other package", () => {
  const page = readFileSync(join(PROJECT, "docs/internals/dependencies.md"), "utf8");
  const rows = [...page.matchAll(/^\| `([^`]+)` \| (\S.*) \|$/gm)].map(([, name]) => name);
  expect(rows.toSorted()).toEqual([...dependencies, ...devDependencies].toSorted());
});
