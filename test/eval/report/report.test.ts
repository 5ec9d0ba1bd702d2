import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EvalArm, QuestionRecord, RunRecord } from "../../../src/eval/base/run-record.js";
import { renderReport } from "../../../src/eval/report/report.js";
import { answeredBy, EXACT_ARM, failedBy, README_ARM, runOf } from "../run/run-fixture.js";

const ELEMENTS = new Set(
  (
    "html head meta title style body main header section footer h1 h2 p strong small code ul li dl dt dd div " +
    "details summary table caption thead tbody tr th td"
  ).split(" "),
);
const ATTRIBUTES = new Set(
  "lang charset name content http-equiv class role tabindex aria-label scope colspan".split(" "),
);

interface Parsed {
  readonly tags: readonly { readonly name: string; readonly attributes: ReadonlyMap<string, string> }[];
  readonly text: string;
}

/** Reads a page strictly: every bracket is a tag's, every tag is known and closed, every attribute is known and quoted. */
function parse(html: string): Parsed {
  const tags: { name: string; attributes: Map<string, string> }[] = [];
  const open: string[] = [];
  const text: string[] = [];
  const page = html.replace(/^<!doctype html>\n/, "").replace(/<style>[^<]*<\/style>/, "<style></style>");
  for (const [piece, between, tag] of page.matchAll(/([^<]+)|<([^<>]*)>|</g)) {
    if (between !== undefined) {
      if (between.includes(">")) throw new Error(`a bracket in text: ${between.slice(0, 200)}`);
      text.push(between);
      continue;
    }
    const [, end, name, attributes, empty] =
      /^(\/?)([a-z][a-z0-9]*)((?: [a-zA-Z0-9-]+="[^"<>]*")*)(\/?)$/.exec(tag ?? "") ?? [];
    if (name === undefined || !ELEMENTS.has(name)) throw new Error(`not an element of ours: ${piece}`);
    if (end === "/") {
      if (open.pop() !== name) throw new Error(`closed, but not open: ${name}`);
      continue;
    }
    const given = [...(attributes ?? "").matchAll(/ ([a-zA-Z0-9-]+)="([^"]*)"/g)];
    for (const [, key = ""] of given) if (!ATTRIBUTES.has(key)) throw new Error(`not an attribute of ours: ${key}`);
    tags.push({ name, attributes: new Map(given.map(([, key = "", value = ""]) => [key, value])) });
    if (empty !== "/") open.push(name);
  }
  if (open.length > 0) throw new Error(`never closed: ${open.join(" ")}`);
  return { tags, text: text.join("") };
}

const carrying = { layout: "conversation", policy: "carry-over", retention: "auto" } as const;
const conversationArm: EvalArm = { ...EXACT_ARM, ...carrying, id: "conversation k=20 carry-over auto" };

const small: readonly QuestionRecord[] = [
  answeredBy(README_ARM, 0, { isWarmUp: true, promptTokens: 50_000, cachedTokens: 0 }),
  answeredBy(README_ARM, 1, { promptTokens: 1_000, cachedTokens: 200, evidence: 2, evidenceInPrompt: 1 }),
  answeredBy(README_ARM, 2, { promptTokens: 1_200, cachedTokens: 400, category: 4 }),
  answeredBy(EXACT_ARM, 0, { isWarmUp: true, promptTokens: 50_000, cachedTokens: 0 }),
  answeredBy(EXACT_ARM, 1, { promptTokens: 1_000, cachedTokens: 800, evidence: 2, evidenceInPrompt: 1 }),
  failedBy(EXACT_ARM, 2, { category: 4 }),
];

describe("what a terminal shows of a report", () => {
  const { summary } = renderReport(runOf(), small);
  const rowsOf = (text: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith("| "))
      .map((line) =>
        line
          .split("|")
          .map((cell) => cell.trim())
          .slice(1, -1),
      );

  it("fits 100 columns, also where all was measured of arms with long names", () => {
    const all = { ttftMs: 5, totalMs: 9, answerTokens: 3, f1: 0.5, bleu1: 0.5, likelihood: { nats: -2, tokens: 2 } };
    const judged = { judge: { isCorrect: true, prompt: "", raw: "" }, promptTokens: 123_456, cachedTokens: 50 };
    const depth = { firstBlocks: 5, entropyNats: 1 };
    const long = { ...conversationArm, layout: "single", annotations: "none", depth } as const;
    const arms = [README_ARM, long];
    const measured = arms.map((arm) => answeredBy(arm, 1, { ...all, ...judged, evidence: 2, evidenceInPrompt: 1 }));
    const { summary: shown } = renderReport(runOf({ arms }), measured);
    const lines = shown.split("\n").filter((line) => line.startsWith("|"));
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
    const heads = rowsOf(shown).filter(([name]) => name === "Prompts built by");
    expect(heads.flatMap((cells) => cells.slice(1))).toEqual([
      ...["Prompt tokens", "Uncached", "Hit ratio", "TTFT p50 ms"],
      ...["Judged right", "Log-likelihood", "F1", "Evidence in prompt"],
    ]);
    expect(shown).not.toContain("not measured");
  });

  it("has conversations first, and of each group memprefix’s defaults", () => {
    const talk = { ...EXACT_ARM, id: "talk", layout: "conversation", retention: "auto" } as const;
    const arms = [README_ARM, { ...EXACT_ARM, id: "sorted", policy: "sorted" } as const, EXACT_ARM, talk];
    const counts = { promptTokens: 100, cachedTokens: 50 };
    const { summary } = renderReport(
      runOf({ arms }),
      arms.map((arm) => answeredBy(arm, 1, counts)),
    );
    const shown = summary.split("\n").filter((line) => /^## |^\| [mM]em/.test(line));
    expect(shown.map((line) => line.replace(/^\| | +\|.*/g, ""))).toEqual([
      ...["## Conversations, k = 20", "memprefix, defaults"],
      ...["## Single prompts, k = 20", "memprefix, defaults", "Mem0’s README", "memprefix, sorted"],
    ]);
  });

  it("has the figures that were measured, worked by hand", () => {
    // 2,200 tokens in prompts, 600 of them cached.
    const head = ["Prompts built by", "Prompt tokens", "Uncached", "Hit ratio", "Evidence in prompt"];
    expect(rowsOf(summary).slice(0, 4)).toEqual([
      head,
      expect.anything(),
      ["memprefix, defaults", "1,000", "200", "80.0 %", "50.0 %"],
      ["Mem0’s README", "1,100", "800", "27.3 %", "50.0 % n=1"],
    ]);
  });

  it("has the figures that the page has in the same row", () => {
    const { html, summary } = renderReport(runOf(), small);
    const rowsOfPage = [...html.matchAll(/<tr><th scope="row">(.*?)<\/th>(.*?)<\/tr>/g)];
    for (const [title, ...figures] of rowsOf(summary).slice(2)) {
      const cells = rowsOfPage.flatMap(([, name, row = ""]) => (name === title ? row.split("</td>") : []));
      const shown = cells.map((cell) => cell.replace(/<[^>]*>/g, ""));
      expect(shown).toEqual(expect.arrayContaining(figures));
    }
  });

  it("has rows as long as its head, whatever texts hold", () => {
    const { summary } = renderReport(...hostile("a|b`c``d\n| e |\n# f <img src=x>[g](javascript:h)\u202ei"));
    const table = summary.split("\n").filter((line) => line.startsWith("| "));
    expect(table.length).toBeGreaterThan(3);
    expect(new Set(table.map((line) => line.replaceAll("\\|", "").split("|").length)).size).toBe(1);
    expect(summary.split("\n").filter((line) => /^#+ (?!Single prompts, k = 2[01]$)/.test(line))).toHaveLength(1);
    expect(summary).not.toContain("\u202e");
    expect(summary).not.toContain("<img");
  });
});

describe("report.html", () => {
  const arms = [README_ARM, EXACT_ARM, conversationArm];
  const records = [...small, answeredBy(conversationArm, 1, { promptTokens: 900, cachedTokens: 890, ttftMs: 12 })];
  const page = renderReport(runOf({ arms }), records).html;

  it("lists what failed, settings and notes", () => {
    const { text } = parse(renderReport(runOf(), small).html);
    expect(text).toContain("1 in engine: the engine did not begin to answer within 60000 ms");
    expect(text).toContain("Between arms: each arm has a simulated cache of its own.");
    expect(text).toContain("Questions asked to warm the engine up (1 per arm, the first ones) are in no figure.");
    expect(text).toMatch(
      /Not measured in this run: TTFT p50 ms, .*F1, BLEU-1, Log-likelihood, Judged right\. That is not zero\./,
    );
  });

  it("asks for nothing and runs nothing", () => {
    const { tags } = parse(page);
    expect(tags.find(({ attributes }) => attributes.has("http-equiv"))?.attributes.get("content")).toBe(
      "default-src 'none'; style-src 'unsafe-inline'",
    );
    expect(page).not.toMatch(/url\(|@import|<script|<link|<img|href=|src=/);
  });

  it("has no table or column of what was not measured", () => {
    const unmeasured = renderReport(runOf(), [answeredBy(README_ARM, 1), answeredBy(EXACT_ARM, 1)]);
    expect(unmeasured.html).not.toMatch(/<th scope="col">(TTFT|F1|Hit ratio|Cut)/);
    expect(unmeasured.summary).not.toContain("|");
  });

  it("says that a run is partial, and only then", () => {
    expect(page).not.toContain("Partial run");
    const { html, summary } = renderReport(runOf({ finishedAt: null }), small.slice(0, 4));
    for (const report of [html, summary]) {
      expect(report).toContain("Partial run.");
      expect(report).toContain("4 records so far, and 1 arm behind the others.");
    }
  });

  it("is the same for the same run, and there for one without records or arms", () => {
    expect(renderReport(runOf({ arms }), records).html).toBe(page);
    for (const run of [runOf(), runOf({ arms: [], conversations: [], categories: [] })]) {
      const { html, summary } = renderReport(run, []);
      parse(html);
      expect(html + summary).not.toMatch(/NaN|undefined|Infinity|\[object/);
    }
  });

  it("shows texts as they are, whatever they hold", () => {
    const bad = `"><script>alert('x')</script><img src=x onerror="y">&lt;\u202Egnp.exe\u0000\n`;
    const { tags, text } = parse(renderReport(...hostile(bad)).html);
    expect(tags.map(({ name }) => name)).not.toContain("script");
    const shown =
      "&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&lt;img src=x onerror=&quot;y&quot;&gt;&amp;lt;";
    expect(text).toContain(`${shown}[U+202E]gnp.exe[U+0000]`);
    expect(text).not.toContain("\u202e");
  });

  it("has no element or attribute but its own, whatever texts hold", () => {
    const piece = fc.constantFrom(
      ...["<", ">", '"', "'", "&", "/", "=", "svg", "script", "</td>", "\u2066", "\n", "`", "\\", "$"],
    );
    const text = fc.oneof(
      fc.array(piece).map((pieces) => pieces.join("")),
      fc.string({ unit: "grapheme" }),
    );
    const own = parse(renderReport(...hostile("text")).html).tags.map(({ name }) => name);
    fc.assert(
      fc.property(text, (given) => {
        expect(parse(renderReport(...hostile(given)).html).tags.map(({ name }) => name)).toEqual(own);
      }),
      { numRuns: 30 },
    );
  });
});

/** A run of which every text is the given one. */
function hostile(text: string): [RunRecord, readonly QuestionRecord[]] {
  const [first, second] = [
    { ...README_ARM, id: `1${text}` },
    { ...EXACT_ARM, id: `2${text}`, k: 21 },
  ];
  const run = runOf({
    memprefix: text,
    node: text,
    mem0: text,
    machine: { platform: text, cpu: text, cores: 1, memoryMegabytes: 1 },
    startedAt: text,
    finishedAt: null,
    data: { file: text, sha256: text },
    conversations: [{ id: text, memories: 1, questions: 2 }],
    engine: { kind: "url", model: text, url: text, emptied: text, served: null },
    judge: { url: text, model: text },
    arms: [first, second],
  });
  const texts = { conversation: text, answer: text, gold: text };
  const records = [
    answeredBy(first, 1, { ...texts, promptTokens: 10, cachedTokens: 5, ttftMs: 3 }),
    failedBy(second, 1, { conversation: text, message: text }),
  ];
  return [run, records];
}
