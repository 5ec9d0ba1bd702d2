import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { isTested, measuredDepths, outcomeOf, sureAt } from "../../bench/depth-outcomes.js";
import { meanWithInterval } from "../../bench/statistics.js";
import { factRow, factTables } from "../../src/eval/facts/facts.js";
import { ROOT } from "./pages.js";

const arm = z.object({ tokens: z.int(), nats: z.number() });
const row = z
  .object({ conversation: z.string(), question: z.int(), category: z.int(), answerTokens: z.int() })
  .catchall(arm);
type Row = z.output<typeof row>;

const [PAGE = "", DEPTH = "", ORDERING = ""] = ["quality", "depth", "ordering"].map((page) =>
  readFileSync(join(ROOT, `docs/${page}.md`), "utf8").replaceAll("*", ""),
);

/** The lines of a file in `bench/rows`. */
function rowsOf<T>(file: string, schema: z.ZodType<T>): readonly T[] {
  const text = readFileSync(join(ROOT, `bench/rows/${file}.jsonl`), "utf8").trimEnd();
  return text.split("\n").map((line) => schema.parse(JSON.parse(line)));
}

/** What an arm costs per token of the answer, against another: by default, against the list in the last message. */
function figureOf(file: string, name: string, other = "lastMessage", isOf: (one: Row) => boolean = () => true): string {
  const rows = rowsOf(file, row).filter(isOf);
  const natsOf = (one: Row, of: string) => arm.parse(one[of]).nats / one.answerTokens;
  return meanWithInterval(rows.map((one) => natsOf(one, name) - natsOf(one, other)));
}

/** The cells of a table's row after the one with its name. */
function cellsOf(text: string, name: string): readonly string[] {
  const line = text.split("\n").find((one) => one.startsWith(`| ${name}`)) ?? "";
  return line.split(/ *\| */).slice(2, -1);
}

describe("docs/quality.md has the figures of its rows", () => {
  it.each([
    ["quality-smol", 0, "the default: ", "default"],
    ["quality-smol", 0, "the same, without the line", "withoutLine"],
    ["quality-smol", 0, "the same, in retrieval order", "retrieval"],
    ["quality-smol", 0, "Mem0's list in the system prompt (its README)", "readme"],
    ["quality-qwen", 1, "the default: ", "default"],
    ["quality-qwen", 1, "the same, without the line", "withoutLine"],
    ["quality-qwen", 1, "Mem0's list in the system prompt (its README)", "readme"],
    ["conversations-smol", 0, "the default, memories kept", "default"],
    ["conversations-smol", 0, "`ephemeral`", "ephemeral"],
  ])("%s, column %i: %s", (file, column, prompt, name) => {
    expect(cellsOf(PAGE, prompt)[column]).toBe(figureOf(file, name));
  });

  it("of single facts and of the other categories", () => {
    expect(PAGE).toContain(figureOf("quality-smol", "default", "lastMessage", ({ category }) => category === 4));
    expect(PAGE).toContain(figureOf("quality-smol", "default", "lastMessage", ({ category }) => category !== 4));
  });

  it.each([
    [1, ["no line", "`No longer", "`Most relevant: <old>`", "`Update: <new>`, also", "as memprefix sends it"]],
    [2, ["repeated by the line", "twice", "marked", "kept ", "kept, and repeated", "kept, of an untrusted"]],
  ])("of what is repeated, from column %i of the command's table", (from, names) => {
    const tables = ["facts-smol", "facts-qwen"].map((file) => factTables(rowsOf(file, factRow)));
    for (const name of names) {
      const measured = tables.flatMap((table) => cellsOf(table, name).slice(from, from + 2));
      expect([name, ...cellsOf(PAGE, name).slice(-4)]).toEqual([name, ...measured]);
    }
  });
});

describe("docs/depth.md has the figures of its rows", () => {
  it.each([
    ["the first 5, always", ["depth-smol", "depth-qwen"], () => 0, false],
    ["at most 1 nat (default)", ["depth-smol", "depth-qwen"], sureAt(1), true],
    ["at most 1.5 nats", ["depth-smol", "depth-qwen"], sureAt(1.5), true],
    ["of 80 memories: the first 10, at most 1.5 nats", ["depth-80-qwen"], sureAt(1.5), true],
  ])("%s", (name, files, at, isTried) => {
    const outcomes = files.map((file) => outcomeOf(rowsOf(file, measuredDepths).filter(isTested), at, isTried));
    const figures = outcomes.flatMap(({ computed, nats }) => [computed.toFixed(2), meanWithInterval(nats)]);
    expect(cellsOf(DEPTH, name).slice(-figures.length)).toEqual(figures);
  });
});

it("docs/ordering.md has what carry-over costs", () => {
  expect(`+${/by (\S+ ± \S+) nats/.exec(ORDERING)?.[1]}`).toBe(figureOf("carry-over-smol", "carryOver", "prefixExact"));
});
