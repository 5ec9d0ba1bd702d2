import { parseArgs } from "node:util";
import type { RecordedTrace } from "../src/eval/replay/recorded-trace.js";
import {
  HOW_TO_RECORD,
  RECORDED_CONVERSATIONS,
  readRecordedTrace,
  recordedData,
} from "../test/eval/locomo/recorded-searches.js";

/** The folder of recorded searches that `--data FOLDER` or `LOCOMO_DATA` names; null where neither does. */
export function givenData(): string | null {
  const { data } = parseArgs({ options: { data: { type: "string" } }, strict: false }).values;
  if (typeof data === "string") process.env["LOCOMO_DATA"] = data;
  return recordedData();
}

/** The same; ends the process, saying how to get one, where there is none. */
export function neededData(): string {
  return givenData() ?? endFor(`--data FOLDER is missing: give it, or ${HOW_TO_RECORD}`);
}

/** The path that an option names; ends the process where it is missing. */
export function neededPath(option: "data" | "out", what: string): string {
  const path = parseArgs({ options: { [option]: { type: "string" } }, strict: false }).values[option];
  return typeof path === "string" ? path : endFor(`--${option} is missing: ${what}`);
}

function endFor(usageError: string): never {
  console.error(usageError);
  process.exit(2);
}

/** The recorded searches of all conversations in that folder. */
export function neededTraces(): RecordedTrace[] {
  const data = neededData();
  return RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
}
