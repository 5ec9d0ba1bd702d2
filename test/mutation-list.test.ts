import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { MUTATIONS } from "./mutation-list.js";

const at = (path: string) => resolve(import.meta.dirname, "..", path);

describe("the mutations", () => {
  it.each(MUTATIONS)("have a line to break, once, and tests that are there: $promise", ({ file, from, to, by }) => {
    expect(readFileSync(at(file), "utf8").split(from)).toHaveLength(2);
    expect(to).not.toBe(from);
    expect(by.filter((test) => !existsSync(at(test)))).toEqual([]);
  });
});
