import { z } from "zod";
import { SESSION_ROUTERS, type SessionRouter } from "../engines/adapters/session-routers.js";
import { type IdentitySources, PROMPTING_CLIENTS } from "../service/chat/chat-request.js";

/*
 * Settings of whose a request is: which places of it name the user and the conversation, and where the conversation's key goes.
 */

/** A header's name (RFC 9110 §5.1), none of memstem's own, in lower case. */
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, "must be the name of a header")
  .toLowerCase()
  .refine((name) => !name.startsWith("x-memstem-"), "must not be one of memstem's own");

/** No place is listed. */
export const NOTHING_LISTED: IdentitySources = { user: [], agent: [], conversation: [], sideCall: [] };

const NAMED: Readonly<Record<string, keyof IdentitySources>> = {
  user: "user",
  agent: "agent",
  conversation: "conversation",
  side_call: "sideCall",
};

const ENTRY = /^(\w+)=(header|body|prompt):(.+)$/;
const FIELD = /^[^\s.,=]{1,100}(?:\.[^\s.,=]{1,100}){0,9}$/;

/** Places in their order: `user=header:NAME`, `conversation=body:PATH`, separated by commas. */
export const identitySources = z.string().transform((text, context): IdentitySources => {
  const sources: { [K in keyof IdentitySources]: IdentitySources[K][number][] } = {
    user: [],
    agent: [],
    conversation: [],
    sideCall: [],
  };
  for (const entry of text.split(",").map((part) => part.trim())) {
    const [, what = "", from, place = ""] = ENTRY.exec(entry) ?? [];
    const named = NAMED[what];
    const header = headerName.safeParse(place);
    if (named !== undefined && from === "header" && header.success) {
      sources[named].push({ from, name: header.data });
    } else if (named !== undefined && from === "body" && FIELD.test(place)) {
      sources[named].push({ from, path: place.split(".") });
    } else if (named === "sideCall" && from === "prompt" && PROMPTING_CLIENTS.some((known) => known === place)) {
      sources.sideCall.push({ from, client: place as (typeof PROMPTING_CLIENTS)[number] });
    } else {
      const form =
        "must be user=, agent=, conversation= or side_call=, then header:NAME or body:PATH, separated by commas";
      context.addIssue({ code: "custom", message: `${form}: ${JSON.stringify(entry)} is not` });
    }
  }
  return sources;
});

/** A router by its name, or any that reads a header: `header:NAME`. */
export const sessionRouter = z.string().transform((text, context): SessionRouter => {
  if (Object.hasOwn(SESSION_ROUTERS, text)) return SESSION_ROUTERS[text as keyof typeof SESSION_ROUTERS];
  const [, name] = /^header:(.*)$/.exec(text) ?? [];
  const header = headerName.safeParse(name);
  if (header.success) return { header: header.data };
  context.addIssue({ code: "custom", message: `must be ${Object.keys(SESSION_ROUTERS).join(", ")}, or header:NAME` });
  return z.NEVER;
});
