import type { z } from "zod";
import * as field from "../../service/fields/fields.js";
import { asGiven } from "../../service/fields/given-messages.js";
import { isPlainId, isPlainQuery, isPlainRequestId } from "../../service/fields/plain-fields.js";
import { plainMessages } from "../../service/fields/plain-messages.js";
import type { composeBody } from "./compose-contract.js";

type ComposeBody = z.output<typeof composeBody>;

/** The fields of most requests, and of no others a plain body has any. */
const PLAIN_FIELDS: ReadonlySet<string> = new Set([
  "user_id",
  "agent_id",
  "conversation_id",
  "request_id",
  "query",
  "messages",
  "memories",
] satisfies (keyof ComposeBody)[]);

/**
 * The body of a compose as most are, accepted by its shape: ids, a query, plain messages, memories. The schema takes five times as long. Null
 * for all others, valid or not, which are the schema's, as are the words for what is wrong with them.
 */
export function plainComposeBody(value: unknown): ComposeBody | null {
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return null;
  for (const name of Object.keys(value)) if (!PLAIN_FIELDS.has(name)) return null;
  const body = value as { readonly [Name in keyof ComposeBody]?: unknown };
  const { user_id, agent_id, conversation_id, request_id, query, messages, memories } = body;
  if (!isPlainId(user_id)) return null;
  if (agent_id !== undefined && !isPlainId(agent_id)) return null;
  if (conversation_id !== undefined && !isPlainId(conversation_id)) return null;
  if (request_id !== undefined && !isPlainRequestId(request_id)) return null;
  if (query !== undefined && !isPlainQuery(query)) return null;
  const chat = Array.isArray(messages) ? plainMessages(messages, field.MAX_MESSAGES) : null;
  if (chat === null && messages !== undefined) return null;
  const found = memories === undefined ? undefined : field.memoriesIn(memories);
  if (found !== undefined && !("usable" in found)) return null;
  return {
    user_id,
    agent_id,
    conversation_id,
    request_id,
    query,
    messages: chat === null ? undefined : asGiven(chat),
    memories: found,
  } as ComposeBody;
}
