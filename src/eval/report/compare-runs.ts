import type { WrittenRun } from "../base/run-files.js";
import { type EvalArm, leavesOf, questionKey, type RunRecord } from "../base/run-record.js";
import { COMPARED_MEASURES, compareRecords } from "../measures/paired-difference.js";
import { markdownCode, markdownTable } from "./markdown.js";
import { comparedCells, type ReportTable } from "./report-tables.js";

/** What differs between any two runs (a salt is drawn for each), or is compared apart. */
const NOT_COMPARED: ReadonlySet<string> = new Set(["startedAt", "finishedAt", "arms", "settings.salt"]);

/**
 * Compares two runs, as Markdown: settings that differ; for each arm that both have, how B differs from A on the questions that both
 * answered, with 95 % bootstrap intervals seeded by A's seed; and what is in one only. Arms are the same where their ids and definitions are.
 */
export function compareRuns(a: WrittenRun, b: WrittenRun): string {
  const common = a.run.arms.filter((arm) => b.run.arms.some((other) => isSameArm(arm, other)));
  const isSameData = a.run.data.sha256 === b.run.data.sha256;
  const unfinished = [...(a.run.finishedAt === null ? ["Run A"] : []), ...(b.run.finishedAt === null ? ["Run B"] : [])];
  const sections = [
    "# Two runs compared",
    `A was started ${markdownCode(a.run.startedAt)}, B ${markdownCode(b.run.startedAt)}.`,
    ...unfinished.map((run) => `**${run} is partial**: it was interrupted, or is still running.`),
    ...(isSameData
      ? []
      : [
          "**The data files differ**, so questions of the same place may not be the same questions: differences may mean nothing.",
        ]),
    "## Settings that differ",
    settings(a.run, b.run),
    "## B against A",
    "Per arm that both have: mean of B − A and median of B ÷ A of the questions that both answered, with 95 % bootstrap intervals over conversations; over questions, where fewer than six conversations are in both. Warm-ups are left out.",
    common.length === 0 ? "No arm is in both." : markdownTable(differences(common, a, b)),
    "## In one only",
    inOneOnly(common, a, b),
  ];
  return `${sections.join("\n\n")}\n`;
}

function isSameArm(a: EvalArm, b: EvalArm): boolean {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
}

function settings(a: RunRecord, b: RunRecord): string {
  const plain = (leaf: unknown) => (typeof leaf === "string" ? leaf : JSON.stringify(leaf));
  const [before, after] = [leavesOf(a, plain), leavesOf(b, plain)];
  const lines = [...new Set([...before.keys(), ...after.keys()])]
    .filter((path) => !NOT_COMPARED.has(path) && before.get(path) !== after.get(path))
    .map((path) => `- ${path}: ${shown(before.get(path))} → ${shown(after.get(path))}`);
  return lines.length === 0 ? "None." : lines.join("\n");
}

function shown(value: string | undefined): string {
  return value === undefined ? "absent" : markdownCode(value);
}

function differences(common: readonly EvalArm[], a: WrittenRun, b: WrittenRun): ReportTable {
  const rows = common.map((arm) => ({
    title: arm.id,
    cells: comparedCells(compareRecords(ofArm(a, arm), ofArm(b, arm), a.run.seed)),
  }));
  const columns = COMPARED_MEASURES.flatMap(({ name, hasRatio }) => (hasRatio ? [name, `${name}, ratio`] : [name]));
  return { caption: "B against A", rowsAre: "Arm", columns: ["In both", ...columns], groups: [{ title: "", rows }] };
}

const ofArm = ({ records }: WrittenRun, arm: EvalArm) => records.filter((record) => record.arm === arm.id);

function inOneOnly(common: readonly EvalArm[], a: WrittenRun, b: WrittenRun): string {
  const ids = new Set(common.map(({ id }) => id));
  const lines = [
    { name: "A", own: a, other: b },
    { name: "B", own: b, other: a },
  ].flatMap(({ name, own, other }) => [
    ...own.run.arms.filter(({ id }) => !ids.has(id)).map(({ id }) => `- Arm in ${name} only: ${markdownCode(id)}`),
    ...common.flatMap((arm) => {
      const known = new Set(ofArm(other, arm).map(questionKey));
      const alone = ofArm(own, arm).filter((record) => !known.has(questionKey(record))).length;
      return alone === 0 ? [] : [`- ${alone} questions of ${markdownCode(arm.id)} in ${name} only`];
    }),
  ]);
  return lines.length === 0 ? "Nothing." : lines.join("\n");
}
