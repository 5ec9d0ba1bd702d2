import { parseArgs } from "node:util";
import { EvaluationError } from "../src/eval/base/run-files.js";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import {
  HOW_TO_RECORD,
  RECORDED_CONVERSATIONS,
  readRecordedTrace,
  recordedData,
} from "../test/eval/locomo/recorded-searches.js";

/** The folder of recorded searches that `--data FOLDER` or `LOCOMO_DATA` names; null where neither does. */
export function givenData(): string | null {
  const data = pathOf("data");
  if (data !== null) process.env["LOCOMO_DATA"] = data;
  return recordedData();
}

/** The same; throws, saying how to get one, where there is none. */
export function neededData(): string {
  const data = givenData();
  if (data === null) throw new EvaluationError(`--data FOLDER is missing: give it, or ${HOW_TO_RECORD}`);
  return data;
}

/** The path that an option names; throws where it is missing. */
export function neededPath(option: "data" | "out", what: string): string {
  const path = pathOf(option);
  if (path === null) throw new EvaluationError(`--${option} is missing: ${what}`);
  return path;
}

function pathOf(option: "data" | "out"): string | null {
  const path = parseArgs({ options: { [option]: { type: "string" } }, strict: false }).values[option];
  return typeof path === "string" ? path : null;
}

/** The recorded searches of all conversations in that folder. */
export function neededTraces(): RecordedTrace[] {
  const data = neededData();
  return RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
}
