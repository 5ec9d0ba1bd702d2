import type { QuestionRecord, RunRecord } from "./run-record.js";

/** STAND-IN until the report's own branch is merged. */
export function renderReports(run: RunRecord, records: readonly QuestionRecord[]): { html: string; markdown: string } {
  const rows = run.arms.map(({ id }) => {
    const of = records.filter((record) => record.arm === id);
    const counted = of.filter((record) => record.outcome === "answered").filter(({ isWarmUp }) => !isWarmUp);
    const mean = (field: "promptTokens" | "cachedTokens" | "ttftMs" | "f1" | "bleu1") => {
      const known = counted.flatMap((record) => record[field] ?? []);
      return known.length === 0 ? "not measured" : (known.reduce((a, b) => a + b, 0) / known.length).toFixed(2);
    };
    const sum = (field: "evidence" | "evidenceInPrompt") => counted.reduce((total, record) => total + record[field], 0);
    const cells = [mean("promptTokens"), mean("cachedTokens"), mean("ttftMs"), mean("f1"), mean("bleu1")];
    const recall = (sum("evidenceInPrompt") / sum("evidence")).toFixed(3);
    return `| ${[id, counted.length, of.length - counted.length, ...cells, recall].join(" | ")} |`;
  });
  const head =
    "| arm | questions | others | prompt | cached | TTFT | F1 | BLEU-1 | evidence |\n| - | - | - | - | - | - | - | - | - |";
  const markdown = `${[head, ...rows].join("\n")}\n`;
  return { html: `<!doctype html><pre>${markdown}</pre>\n`, markdown };
}
