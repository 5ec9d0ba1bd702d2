import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { meanWithInterval } from "../../bench/statistics.js";
import { ROOT } from "./pages.js";

const arm = z.object({ tokens: z.int(), nats: z.number() });
const row = z
  .object({ conversation: z.string(), question: z.int(), category: z.int(), answerTokens: z.int(), lastMessage: arm })
  .catchall(arm);
type Row = z.output<typeof row>;

const PAGE = readFileSync(join(ROOT, "docs/quality.md"), "utf8");

/** What an arm costs per token of the answer, against the list in the last message. */
function figureOf(file: string, name: string, isOf: (one: Row) => boolean = () => true): string {
  const text = readFileSync(join(ROOT, `bench/rows/${file}.jsonl`), "utf8");
  const lines = text.trimEnd().split("\n");
  const rows = lines.map((line) => row.parse(JSON.parse(line))).filter(isOf);
  const costs = rows.map((one) => (arm.parse(one[name]).nats - one.lastMessage.nats) / one.answerTokens);
  return meanWithInterval(costs);
}

describe("docs/quality.md has the figures of its rows", () => {
  it.each([
    ["quality-smol", 1, "**the default**:", "default"],
    ["quality-smol", 1, "the same, without the line", "withoutLine"],
    ["quality-smol", 1, "the same, in retrieval order", "retrieval"],
    ["quality-smol", 1, "Mem0's list in the system prompt (its README)", "readme"],
    ["quality-qwen", 2, "**the default**:", "default"],
    ["quality-qwen", 2, "the same, without the line", "withoutLine"],
    ["quality-qwen", 2, "Mem0's list in the system prompt (its README)", "readme"],
    ["conversations-smol", 1, "**the default, memories kept**", "default"],
    ["conversations-smol", 1, "`ephemeral`", "ephemeral"],
  ])("%s, column %i: %s", (file, column, prompt, name) => {
    const line = PAGE.split("\n").findLast((one) => one.startsWith(`| ${prompt}`)) ?? "";
    expect(line.split(/ *\| */)[column + 1]?.replaceAll("*", "")).toBe(figureOf(file, name));
  });

  it("of single facts and of the other categories", () => {
    expect(PAGE).toContain(figureOf("quality-smol", "default", ({ category }) => category === 4));
    expect(PAGE).toContain(figureOf("quality-smol", "default", ({ category }) => category !== 4));
  });
});
