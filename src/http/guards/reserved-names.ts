import { InvalidRequestError } from "../../service/base/errors.js";

/** A field's name in JSON that is `__proto__`, however it is escaped. Inside a text its quotes would have backslashes. */
const RESERVED =
  /"(?:_|\\u005f){2}(?:p|\\u0070)(?:r|\\u0072)(?:o|\\u006f)(?:t|\\u0074)(?:o|\\u006f)(?:_|\\u005f){2}"[\t\n\r ]*:/i;

/**
 * Refuses JSON with a field named `__proto__`: JavaScript takes that for something else where objects are put together, and it would be
 * lost without a word. Throws {@link InvalidRequestError}.
 */
export function refuseReservedNames(json: string): void {
  if (RESERVED.test(json))
    throw new InvalidRequestError([{ field: "__proto__", message: "must not be a field's name" }]);
}
