import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What the title of a test says that has no {@link conformanceCases}. */
export const SKIPPED = " (skipped: CONFORMANCE_DATA names no folder)";

/**
 * A JSON file of the folder that `CONFORMANCE_DATA` names; null where it is unset. The folder holds what papers print, which is not the
 * project's to give: worked examples (`paper-examples.json`) and cases of ordering (`online-cases.json`), in the form in which the tests that
 * ask for them declare them.
 */
export function conformanceCases(file: string): unknown {
  const folder = process.env["CONFORMANCE_DATA"];
  return folder === undefined || folder === ""
    ? null
    : (JSON.parse(readFileSync(join(folder, file), "utf8")) as unknown);
}
