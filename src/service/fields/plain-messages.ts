import { type ChatMessage, unstorable } from "../../core/index.js";
import { LAST_ROLES, MESSAGE_ROLES } from "./fields.js";

const ROLES: ReadonlySet<unknown> = new Set(MESSAGE_ROLES);

/**
 * Chat messages that have a role and a text each and nothing else, as most have, accepted by their shape: a history of hundreds is sent with
 * every request, and the schema takes ten times as long. Null for all others, valid or not, which are the schema's.
 *
 * @param most messages of a request
 */
export function plainMessages(given: readonly unknown[], most: number): readonly ChatMessage[] | null {
  if (given.length === 0 || given.length > most || !given.every(isPlain)) return null;
  // Copies, as the schema's are: the caller may change its own.
  return LAST_ROLES.includes(given.at(-1)?.role ?? "") ? given.map(({ role, content }) => ({ role, content })) : null;
}

function isPlain(message: unknown): message is ChatMessage & { readonly content: string } {
  if (typeof message !== "object" || message === null || Object.getPrototypeOf(message) !== Object.prototype)
    return false;
  const { role, content } = message as { readonly role?: unknown; readonly content?: unknown };
  if (typeof content !== "string" || !ROLES.has(role)) return false;
  return (
    Object.keys(message).length === 2 &&
    Object.hasOwn(message, "role") &&
    Object.hasOwn(message, "content") &&
    unstorable(content) === null
  );
}
