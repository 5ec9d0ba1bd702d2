/** A place of a request in which it says who it is. */
export type IdentitySource =
  /** A header, its name in lower case. */
  | { readonly from: "header"; readonly name: string }
  /** A field of the body, by its path. */
  | { readonly from: "body"; readonly path: readonly string[] };

/** What identifies a call that a client makes for itself. */
export type SideCallSource =
  | IdentitySource
  /** The form of the prompts that a client makes such calls with, where it says so nowhere else. */
  | { readonly from: "prompt"; readonly client: (typeof PROMPTING_CLIENTS)[number] };

/** Clients whose side calls are known by their prompts. */
export const PROMPTING_CLIENTS = ["open-webui"] as const;

/** Where a request may say who it is, besides memstem's own headers and fields: places of the operator's choice, the first that has a name counts. */
export interface IdentitySources {
  readonly user: readonly IdentitySource[];
  readonly agent: readonly IdentitySource[];
  readonly conversation: readonly IdentitySource[];
  /** Says that the client makes the request for itself. */
  readonly sideCall: readonly SideCallSource[];
}

/** Open WebUI names the task of a call that it makes for itself: https://docs.openwebui.com/reference/env-configuration, custom headers. */
const TASK_OF_OPEN_WEBUI: IdentitySource = { from: "header", name: "x-openwebui-task" };

/** No request names anybody, or its conversation, in a header of another tool's; side calls may be known by theirs. */
export const DEFAULT_IDENTITY_SOURCES: IdentitySources = {
  user: [],
  agent: [],
  conversation: [],
  sideCall: [TASK_OF_OPEN_WEBUI],
};

/**
 * Whether a body is a side call by its prompt. Open WebUI's own templates: one message of the user's that begins with `### Task:`, unstreamed.
 * Source: https://docs.openwebui.com/reference/env-configuration, `TITLE_GENERATION_PROMPT_TEMPLATE` and the like
 */
export function isPromptOfSideCall(body: unknown): boolean {
  if (typeof body !== "object" || body === null || !("messages" in body)) return false;
  const { messages } = body;
  const [message, ...others] = Array.isArray(messages) ? (messages as readonly unknown[]) : [];
  if (others.length > 0 || typeof message !== "object" || message === null) return false;
  const { role, content } = message as { readonly role?: unknown; readonly content?: unknown };
  const isStreamed = "stream" in body && body.stream === true;
  return role === "user" && typeof content === "string" && content.startsWith("### Task:") && !isStreamed;
}
