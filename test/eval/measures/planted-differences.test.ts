import { describe, expect, it } from "vitest";
import type { EvalArm, QuestionRecord } from "../../../src/eval/base/run-record.js";
import { seeded } from "../../../src/eval/measures/bootstrap.js";
import { qualityChange, verdictOf } from "../../../src/eval/measures/quality-change.js";
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
const QUESTIONS = 400;
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

function armOf(policy: EvalArm["policy"], annotations: EvalArm["annotations"]): EvalArm {
  const arm = ARMS.find((one) => one.policy === policy && one.annotations === annotations);
  if (arm === undefined) throw new Error(`no ${policy} ${annotations}`);
  return arm;
}

/** What a run says of the second arm against the first. */
function found(arms: readonly EvalArm[], records: readonly QuestionRecord[], seed: number) {
  const change = qualityChange({ arms: [...arms], seed }, records)?.arms[0]?.found;
  if (change == null) throw new Error("not compared");
  return change;
}

/** Seeds that an interval of 95 % may miss, or cover beyond its share, by chance: three standard deviations, and as bootstrap is a little short. */
const CHANCE = 3 * Math.sqrt(0.95 * 0.05 * SEEDS) + 0.01 * SEEDS;
const LEAST_COVERED = 0.95 * SEEDS - CHANCE;
const MOST_FALSE = 0.05 * SEEDS + CHANCE;

describe(`planted differences, over ${SEEDS} seeds`, () => {
  const runs = Array.from({ length: SEEDS }, (_, seed) => madeUpRun(seed + 101));
  const none = armOf("sorted", "none");

  it.each([
    ["the order sorted", [armOf("retrieval", null), none], PLANTED.sorted],
    ["the paper's line", [none, armOf("sorted", "paper")], PLANTED.line],
  ] as const)("%s: found with its sign, and covered by the interval in about 19 of 20 runs", (_what, arms, planted) => {
    const all = runs.map((records, seed) => found(arms, records, seed));
    const covered = all.filter(({ difference }) => difference.low <= planted && planted <= difference.high).length;
    expect(covered).toBeGreaterThanOrEqual(LEAST_COVERED);
    expect(covered).toBeLessThan(SEEDS);
    const verdicts = all.map(verdictOf);
    expect(verdicts.filter((verdict) => verdict === (planted < 0 ? "higher" : "lower"))).toEqual([]);
    expect(verdicts.filter((verdict) => verdict !== "not shown").length).toBeGreaterThan(0.9 * SEEDS);
    const mean = all.reduce((sum, { difference }) => sum + difference.value, 0) / SEEDS;
    expect(mean).toBeCloseTo(planted, 1.7);
  });

  it("finds nothing between arms that differ in nothing that counts", () => {
    const arms = [armOf("sorted", null), armOf("sorted", "paper")];
    const verdicts = runs.map((records, seed) => verdictOf(found(arms, records, seed)));
    expect(verdicts.filter((verdict) => verdict !== "not shown").length).toBeLessThanOrEqual(MOST_FALSE);
  });
});
