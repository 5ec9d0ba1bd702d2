import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { meanWithInterval } from "../../bench/statistics.js";
import { ROOT } from "./pages.js";

const given = z.object({ tokens: z.int(), nats: z.number() });
const row = z.object({
  conversation: z.string(),
  question: z.int(),
  answerTokens: z.int(),
  ...{ lastMessage: given, default: given, withoutLine: given, retrieval: given, readme: given },
});
const rows = readFileSync(join(ROOT, "bench/rows/quality-smol.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => row.parse(JSON.parse(line)));
const PAGE = readFileSync(join(ROOT, "docs/quality.md"), "utf8");

describe("docs/quality.md", () => {
  it.each([
    ["**the default**", "default"],
    ["the same, without the line", "withoutLine"],
    ["`- text` in tags, retrieval order, no line", "retrieval"],
    ["Mem0's list in the system prompt (its README)", "readme"],
  ] as const)("has SmolLM2's figure of its rows: %s", (prompt, arm) => {
    const figure = meanWithInterval(
      rows.map(({ answerTokens, lastMessage, [arm]: { nats } }) => (nats - lastMessage.nats) / answerTokens),
    );
    const [, , cell] =
      PAGE.split("\n")
        .find((line) => line.startsWith(`| ${prompt}`))
        ?.split(/ *\| */) ?? [];
    expect(cell?.replaceAll("*", "")).toBe(figure);
  });
});
