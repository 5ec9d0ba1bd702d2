import { largest } from "../../core/text/lists.js";
import type { ReportContent } from "./report-content.js";

/** What stands over both reports. */
export interface ReportTitle {
  readonly heading: string;
  readonly about: string;
  /** What is missing of a run that did not end; null where it did. */
  readonly unfinished: string | null;
}

/** Words the beginning of a report. */
export function reportTitle({ run, records, summaries }: ReportContent): ReportTitle {
  const asked = summaries.map(({ overall, warmUps }) => overall.answered + overall.failed + warmUps);
  const most = largest(asked, 0);
  const engine =
    run.engine.model ?? { simulated: "simulated cache", embedded: "engine inside", url: "engine" }[run.engine.kind];
  const ids = run.conversations.map(({ id }) => id).join(", ");
  const behind = asked.filter((count) => count < most).length;
  return {
    heading: "LoCoMo with Mem0: prompts and cache",
    about: `${ids} · ${count(most, "question")} · ${count(run.arms.length, "arm")} · ${engine} · ${run.startedAt.slice(0, 10)}`,
    unfinished:
      run.finishedAt !== null
        ? null
        : `It was interrupted, or is still running: ${count(records.length, "record")} so far${
            behind === 0 ? "" : `, and ${count(behind, "arm")} behind the others`
          }. Only differences question by question compare like with like.`,
  };
}

function count(number: number, thing: string): string {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}
