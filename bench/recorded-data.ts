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
  const data = givenData();
  if (data !== null) return data;
  console.error(`--data FOLDER is missing: give it, or ${HOW_TO_RECORD}`);
  process.exit(1);
}

/** The recorded searches of all conversations in that folder. */
export function neededTraces(): RecordedTrace[] {
  const data = neededData();
  return RECORDED_CONVERSATIONS.map((name) => readRecordedTrace(data, name));
}
