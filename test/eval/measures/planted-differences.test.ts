import { describe, expect, it } from "vitest";
import type { EvalArm, QuestionRecord } from "../../../src/eval/base/run-record.js";
import { seeded } from "../../../src/eval/measures/bootstrap.js";
import { type QualityChange, qualityChange, verdictOf } from "../../../src/eval/measures/quality-change.js";
import { armsOf } from "../../../src/eval/run/arms.js";
import { IS_WHOLE } from "../../run-length.js";
import { DEFAULT_ARMS } from "../run/default-arms.js";
import { answeredBy } from "../run/run-fixture.js";

const ARMS = armsOf({
  ...DEFAULT_ARMS,
  ks: [20],
  policies: ["retrieval", "sorted"],
  annotations: ["none", null, "paper"],
});
/** What the model that is made up here loses and gains; nothing by whose words an annotation has. */
const PLANTED = { sorted: -0.12, line: 0.15 } as const;
const JUDGED = { judge: { url: "http://127.0.0.1:1/v1", model: "judge-1" } };
const QUESTIONS = 200;
const SEEDS = IS_WHOLE ? 200 : 50;

/** Probability that an arm answers a question right which another answers right with probability `easy`. */
function rightness({ policy, annotations }: EvalArm, easy: number): number {
  const hasLine = annotations === "paper" || (annotations === null && policy !== "retrieval");
  return easy + (policy === "sorted" ? PLANTED.sorted : 0) + (hasLine ? PLANTED.line : 0);
}

/** One run of that model: questions differ in how easy they are, and arms mostly fail on the same ones. */
function madeUpRun(seed: number): QuestionRecord[] {
  const draw = seeded(seed);
  return Array.from({ length: QUESTIONS }, (_, question) => {
    const easy = 0.3 + 0.5 * draw();
    const shared = draw();
    return ARMS.map((arm) => {
      const drawn = draw() < 0.7 ? shared : draw();
      const isCorrect = drawn < rightness(arm, easy);
      return answeredBy(arm, question, { judge: { isCorrect, prompt: "", raw: "" } });
    });
  }).flat();
}

/** How far what an arm gains is another in every conversation: standard deviation. */
const BETWEEN = 0.15;

/** The same model on ten conversations of 10 to 30 questions, with which the order does more or less. */
function madeUpConversations(seed: number): QuestionRecord[] {
  const draw = seeded(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  return Array.from({ length: 10 }, (_, nth) => {
    const own = new Map(ARMS.map((arm) => [arm, arm.policy === "sorted" ? BETWEEN * normal() : 0]));
    return Array.from({ length: 10 + Math.floor(20 * draw()) }, (_, question) => {
      const easy = 0.3 + 0.4 * draw();
      const shared = draw();
      return ARMS.map((arm) => {
        const drawn = draw() < 0.7 ? shared : draw();
        const isCorrect = drawn < rightness(arm, easy) + (own.get(arm) ?? 0);
        const judge = { isCorrect, prompt: "", raw: "" };
        return answeredBy(arm, question, { conversation: `conv-${nth}`, judge });
      });
    }).flat();
  }).flat();
}

function found(run: QualityChange | null, option: string, to: string) {
  const change = run?.options.find((one) => one.option === option && one.to.startsWith(to));
  if (change?.found == null) throw new Error(`no ${option} ${to}`);
  return change.found;
}

/** Seeds that an interval of 95 % may miss, or cover beyond its share, by chance: three standard deviations, and as bootstrap is a little short. */
const CHANCE = 3 * Math.sqrt(0.95 * 0.05 * SEEDS) + 0.01 * SEEDS;
const LEAST_COVERED = 0.95 * SEEDS - CHANCE;
const MOST_FALSE = 0.05 * SEEDS + CHANCE;

describe(`planted differences, over ${SEEDS} seeds`, () => {
  const runs = Array.from({ length: SEEDS }, (_, seed) =>
    qualityChange({ ...JUDGED, arms: ARMS, seed }, madeUpRun(seed + 101)),
  );

  it.each([
    ["order", "sorted", PLANTED.sorted],
    ["annotations", "paper", PLANTED.line],
  ] as const)(
    "%s, %s: found with its sign, and covered by the interval in about 19 of 20 runs",
    (option, to, planted) => {
      const all = runs.map((run) => found(run, option, to));
      const covered = all.filter(({ difference }) => difference.low <= planted && planted <= difference.high).length;
      expect(covered).toBeGreaterThanOrEqual(LEAST_COVERED);
      expect(covered).toBeLessThan(SEEDS);
      const verdicts = all.map(verdictOf);
      expect(verdicts.filter((verdict) => verdict === (planted < 0 ? "higher" : "lower"))).toEqual([]);
      expect(verdicts.filter((verdict) => verdict !== "not shown").length).toBeGreaterThan(0.9 * SEEDS);
      const mean = all.reduce((sum, { difference }) => sum + difference.value, 0) / SEEDS;
      expect(mean).toBeCloseTo(planted, 1.7);
    },
  );

  it("on ten conversations that differ: covered by intervals over conversations, and not by intervals over questions", () => {
    const [retrieval, sorted] = ["retrieval", "sorted"].map((policy) =>
      ARMS.find((arm) => arm.policy === policy && arm.annotations === (policy === "retrieval" ? null : "none")),
    );
    if (retrieval === undefined || sorted === undefined) throw new Error("no such arms");
    const arms = [retrieval, sorted];
    const seeds = Array.from({ length: SEEDS }, (_, seed) => seed);
    const records = seeds.map((seed) => madeUpConversations(seed + 1));
    const coverage = (of: (records: readonly QuestionRecord[]) => readonly QuestionRecord[]) =>
      seeds.filter((seed) => {
        const change = qualityChange({ ...JUDGED, arms, seed }, of(records[seed] ?? []))?.arms[0]?.found;
        if (change == null) throw new Error("not compared");
        const { low, high } = change.difference;
        return low <= PLANTED.sorted && PLANTED.sorted <= high;
      }).length;
    const covered = coverage((all) => all);
    expect(covered).toBeGreaterThanOrEqual(LEAST_COVERED);
    expect(covered).toBeLessThan(SEEDS);
    // As if all questions were one conversation's.
    const asOne = coverage((all) =>
      all.map((record) => ({
        ...record,
        conversation: "conv-0",
        question: 100 * Number(record.conversation.slice("conv-".length)) + record.question,
      })),
    );
    expect(asOne).toBeLessThan(LEAST_COVERED);
  });

  it("finds nothing between arms that differ in nothing that counts", () => {
    const [mine, papers] = [null, "paper"].map((annotations) =>
      ARMS.find((arm) => arm.policy === "sorted" && arm.annotations === annotations),
    );
    if (mine === undefined || papers === undefined) throw new Error("no such arms");
    const verdicts = Array.from({ length: SEEDS }, (_, seed) => {
      const change = qualityChange({ ...JUDGED, arms: [mine, papers], seed }, madeUpRun(seed + 101))?.arms[0]?.found;
      if (change == null) throw new Error("not compared");
      return verdictOf(change);
    });
    expect(verdicts.filter((verdict) => verdict !== "not shown").length).toBeLessThanOrEqual(MOST_FALSE);
  });
});
