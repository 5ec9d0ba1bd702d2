import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, it } from "vitest";
import { importsIn } from "../../.ci/module-imports.js";

const ROOT = resolve(import.meta.dirname, "../..");
const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
  readonly peerDependencies: Readonly<Record<string, string>>;
};

/** The packages that whoever imports a module has to have, of those that memprefix leaves to its users. */
function neededBy(path: string, seen = new Set<string>()): string[] {
  if (seen.has(path)) return [];
  seen.add(path);
  return importsIn(readFileSync(path, "utf8")).flatMap(({ specifier, isType, names }) => {
    const isOfTypes =
      isType ||
      (names !== "" &&
        names
          .replace(/[{}]/g, "")
          .split(",")
          .every((name) => /^\s*(?:type\s|$)/.test(name)));
    if (isOfTypes) return [];
    if (specifier.startsWith(".")) return neededBy(join(dirname(path), specifier.replace(/\.js$/, ".ts")), seen);
    return Object.keys(peerDependencies).filter((name) => specifier === name || specifier.startsWith(`${name}/`));
  });
}

// Whoever has a graph of LangGraph's has no `langchain`.
it.each([
  ["ai-sdk", []],
  ["langchain", ["@langchain/core", "langchain"]],
  ["langgraph", ["@langchain/core"]],
  ["mastra", []],
  ["mem0", []],
  ["openai-agents", []],
])("memprefix/%s needs no other framework than its page says", (name, packages) => {
  const needed = new Set(neededBy(join(ROOT, "src/integrations", `${name}.ts`)));
  expect([...needed].toSorted()).toEqual(packages);
});
