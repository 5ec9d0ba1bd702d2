import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

describe("what has no bound", () => {
  it("is put on the stack nowhere: a call with a list's elements as arguments ends at some hundred thousand", () => {
    const source = resolve(import.meta.dirname, "../../../src");
    const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
    // The dashboard's page shows as many as the API answers at once.
    const spread =
      /(?:\bMath\.(?:max|min)|\.(?:push|unshift|splice|concat)|\bfromC\w+)\s*\(\s*(?:[^(){}]*,\s*)?\.\.\.|\.apply\(/;
    const found = files.filter((file) => {
      if (file.startsWith("dashboard/")) return false;
      const code = readFileSync(join(source, file), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
      return spread.test(code.replaceAll("Reflect.apply(", ""));
    });
    expect(found).toEqual([]);
  });
});
