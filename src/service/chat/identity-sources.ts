/** A place of a request in which it says who it is. */
export type IdentitySource =
  /** A header, its name in lower case. */
  | { readonly from: "header"; readonly name: string }
  /** A field of the body, by its path. */
  | { readonly from: "body"; readonly path: readonly string[] };

/** Where a request may say who it is, besides memstem's own headers and fields: places of the operator's choice, the first that has a name counts. */
export interface IdentitySources {
  readonly user: readonly IdentitySource[];
  readonly agent: readonly IdentitySource[];
  readonly conversation: readonly IdentitySource[];
  /** Says that the client makes the request for itself. */
  readonly sideCall: readonly IdentitySource[];
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
