import { readFileSync } from "node:fs";
import { InvalidRequestError } from "../service/base/errors.js";
import { readOptions } from "../service/fields/read-options.js";
import { type AlertFile, alertFile } from "../service/usage/usage-alerts.js";
import { type Settings, variableOf } from "./setting-list.js";

const NO_ALERTS: AlertFile = { rules: [] };

/** The rules of `MEMSTEM_ALERTS`; none without one. Throws {@link InvalidRequestError}, naming what is wrong in the file. */
export function readAlertFile({ alerts }: Pick<Settings, "alerts">): AlertFile {
  if (alerts === undefined) return NO_ALERTS;
  const field = variableOf("alerts");
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(alerts, "utf8"));
  } catch (error) {
    const message = error instanceof SyntaxError ? "is not JSON" : "cannot be read";
    throw new InvalidRequestError([{ field, message: `${alerts} ${message}` }]);
  }
  try {
    return readOptions(alertFile, json);
  } catch (error) {
    if (!(error instanceof InvalidRequestError)) throw error;
    throw new InvalidRequestError(
      error.issues.map((issue) => ({ field, message: `${alerts}: ${issue.field}: ${issue.message}` })),
    );
  }
}
