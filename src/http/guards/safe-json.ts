import { refuseDeepNesting } from "./nesting.js";
import { refuseReservedNames } from "./reserved-names.js";

/**
 * Parses a client's JSON. Throws `InvalidRequestError`, before anything is parsed, where it is nested too deep or has a field that
 * JavaScript would lose; a `SyntaxError` where it is no JSON.
 */
export function parseSafely(json: string): unknown {
  refuseUnsafe(json);
  return JSON.parse(json);
}

/** The first half of {@link parseSafely}, for text that others parse. */
export function refuseUnsafe(json: string): void {
  refuseDeepNesting(json);
  refuseReservedNames(json);
}
