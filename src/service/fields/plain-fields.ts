import { unstorable } from "../../core/index.js";
import { MAX_ID_CHARACTERS, MAX_TEXT_CHARACTERS } from "./fields.js";

/*
 * Fields of the hot route, accepted by their shape in a fraction of their schemas' time. What these accept, the schemas of the same names
 * accept unmodified.
 */

/** As `userId`, `agentId` and `conversationId`. */
export function isPlainId(id: unknown): id is string {
  return typeof id === "string" && id.length <= MAX_ID_CHARACTERS && id.trim() !== "" && unstorable(id) === null;
}

/** As `newRequestId`. */
export function isPlainRequestId(id: unknown): id is string {
  return isPlainId(id) && /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(id);
}

/** As `query`. */
export function isPlainQuery(query: unknown): query is string {
  const isShort = typeof query === "string" && query.length <= MAX_TEXT_CHARACTERS;
  return isShort && query.trim() !== "" && unstorable(query) === null;
}
