import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { messageText } from "../../src/core/text/message.js";
import { readLocomo } from "../../src/eval/locomo/locomo-data.js";
import { qualityChange, verdictOf } from "../../src/eval/measures/quality-change.js";
import {
  openAiEngine,
  type Received,
  sendEvents,
  sendJson,
  streamedAnswer,
  wholeAnswer,
} from "../http/routes/openai-engine.js";
import { SAMPLE, writtenRun } from "./eval-directory.js";
import { commands } from "./memprefix-command.js";

/** The sample, with each question asked in two ways: twice as many. */
const data = z.array(z.looseObject({ qa: z.array(z.looseObject({ question: z.string() })) }));
const asked = data.parse(JSON.parse(readFileSync(SAMPLE, "utf8"))).map((conversation) => ({
  ...conversation,
  qa: conversation.qa.flatMap((one) => [one, { ...one, question: `Do you recall this: ${one.question}` }]),
}));
const questions = readLocomo(asked)[0]?.questions ?? [];
const WRONG = "A lighthouse in Norway";

/** What the stub's answers depend on, as it reads them from the prompt; nothing depends on an annotation's words. */
const PLANTED = { easy: 0.4, ranked: 0.3 } as const;

/** From 0 to below 1, the same for the same text. */
function drawn(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32BE() / 2 ** 32;
}

interface Seen {
  /** Questions and memories, without the line that is different in every run. */
  readonly text: string;
  readonly question: string;
  /** Probability that it is answered right. */
  readonly rightness: number;
}

function seenIn({ body }: Received): Seen {
  const [system = "", user = ""] = body.messages.map(messageText);
  const whole = `${system}\n${user}`;
  const section = /<memories>\n(.*?)<\/memories>/s.exec(whole)?.[1] ?? "";
  const isRanked = /^(Most relevant|Please read)/m.test(whole);
  const rightness = PLANTED.easy + (isRanked ? PLANTED.ranked : 0);
  return { text: `${section}${user}`, question: user.split("\n").at(-1) ?? "", rightness };
}

describe("memprefix eval locomo, on an engine whose answers depend on annotations", () => {
  const memprefix = commands();
  const engine = openAiEngine();
  const judge = openAiEngine();

  it("finds what was planted, with its sign and within its interval, and nothing else", async () => {
    engine.behave((request, response, usage) => {
      const { text, question, rightness } = seenIn(request);
      // Arms mostly fail on the same questions; the rest is noise.
      const luck = drawn(`noise ${text}`) < 0.15 ? drawn(text) : drawn(`question ${question}`);
      const gold = questions.find((known) => known.question === question)?.answer ?? "Yes.";
      sendEvents(response, streamedAnswer(luck < rightness ? gold : WRONG, usage));
    });
    judge.behave(({ body }, response, usage) => {
      const label = messageText(body.messages[0] ?? { role: "user" }).includes(WRONG) ? "WRONG" : "CORRECT";
      sendJson(response, 200, wholeAnswer(`{"label":"${label}"}`, usage));
    });
    const [out, file] = [join(memprefix.root, "out"), join(memprefix.root, "asked.json")];
    writeFileSync(file, JSON.stringify(asked));
    const arms = [
      "--policies",
      "sorted",
      "--annotations",
      "none,default,paper",
      "--k",
      "8",
      "--warm-up",
      "0",
      "--layout",
      "single",
    ];
    const engines = ["--engine", engine.url, "--model", "stub-1", "--judge", judge.url, "--judge-model", "judge-1"];
    const ended = await memprefix.run(["eval", "locomo", "--data", file, "--out", out, ...arms, ...engines]);
    expect(ended).toMatchObject({ code: 0, stderr: "" });

    const { run, records } = writtenRun(out);
    expect(run.arms.map(({ id }) => id)).toEqual([
      "single k=8 sorted annotations=none",
      "single k=8 sorted",
      "single k=8 sorted annotations=paper",
    ]);
    const change = qualityChange(run, records);
    expect(change?.score).toBe("judge");
    expect(change?.arms).toHaveLength(2);
    for (const { found } of change?.arms ?? []) {
      if (found === null) throw new Error("not compared");
      expect(verdictOf(found)).toBe("higher");
      expect(found.difference.low).toBeLessThanOrEqual(PLANTED.ranked);
      expect(found.difference.high).toBeGreaterThanOrEqual(PLANTED.ranked);
    }
    const byWords = run.arms.filter((arm) => arm.annotations !== "none");
    const words = qualityChange({ ...run, arms: byWords }, records)?.arms[0]?.found;
    expect(words == null ? null : verdictOf(words)).toBe("not shown");

    const [first = "", precision = ""] = ended.stdout.split("\n").filter((line) => line.startsWith("- "));
    expect(first).toMatch(/^- Answers, by the judge: of 2 ways to build prompts, \d scored higher/);
    // No difference without its interval.
    expect(first.match(/[+−][\d.]+ \([+−]?[\d.]+ to [+−]?[\d.]+\) points/g)?.length).toBeGreaterThan(0);
    expect(precision).toMatch(
      /^- Precision: 54 questions in both arms, of 1 conversation: too few to resample, .* reach at most ±[\d.]+ points\.$/,
    );
    expect(readFileSync(join(out, "report.html"), "utf8")).toContain("Did answers change?");
  });
});
