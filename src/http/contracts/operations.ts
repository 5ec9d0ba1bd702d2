import { BODY_PROBLEMS, type ProblemStatus, REQUEST_PROBLEMS } from "./openapi-problems.js";

/*
 * The operations of the OpenAPI document, by operation id.
 */

/** The groups of operations, in the order of the document. */
export const TAGS = {
  Prompts: "Compose prompts with a stable prefix from a user's memories.",
  Chat: "OpenAI-compatible proxy: prompts are composed on their way to the engine.",
  Messages: "Anthropic-compatible proxy: the same for clients of Anthropic's API.",
  Cache: "What the engine cached and evicted, and why a prompt hit or missed.",
  Memories: "Add memories to the source, forget one, receive Mem0's events.",
  Users: "Show, export and forget what is stored on a user.",
  Usage: "What prompts cost over time, and why they missed; the dashboard's data.",
  Operations: "Health and metrics.",
} as const;

/** How the document describes an operation. */
export interface Operation {
  readonly operationId: string;
  readonly tags: [keyof typeof TAGS];
  readonly summary: string;
  readonly description: string;
  /** Described by themselves; others are `default`. */
  readonly problems: readonly ProblemStatus[];
}

const BY_QUERY = "With all ids in the query: a path cannot hold `.` or `..`, and some proxies reject `%2F`.";

const USAGE_PROBLEMS = [...REQUEST_PROBLEMS, 501] as const;

const ofUser = {
  index: {
    tags: ["Users"],
    summary: "Show a user's context index",
    description: "The prefixes that prompts of this user and agent had, with their use.",
    problems: REQUEST_PROBLEMS,
  },
  export: {
    tags: ["Users"],
    summary: "Export everything stored on a user",
    description: "Database rows of every agent, and the memories that memstem owns. Without digests.",
    problems: [...REQUEST_PROBLEMS, 502, 504],
  },
  forget: {
    tags: ["Users"],
    summary: "Forget a user",
    description: "Erases the user's state with every agent. Memories that another system owns stay there.",
    problems: [...REQUEST_PROBLEMS, 501, 502, 504],
  },
  forgetMemory: {
    tags: ["Memories"],
    summary: "Forget a memory",
    description: "Erases its text everywhere; it is never sent again, even if the source returns it.",
    problems: [...REQUEST_PROBLEMS, 501, 502, 504],
  },
  explain: {
    tags: ["Cache"],
    summary: "Explain a prompt's cache hit",
    description: "Where the prompt first differs from the nearest earlier one, why, and what that cost.",
    problems: [...REQUEST_PROBLEMS, 404],
  },
} as const satisfies Record<string, Omit<Operation, "operationId">>;

export const OPERATIONS = {
  compose: {
    operationId: "compose",
    tags: ["Prompts"],
    summary: "Compose a prompt",
    description: "Puts the memories into the messages so that the engine's prefix cache hits.",
    problems: [...BODY_PROBLEMS, 409],
  },
  composeBatch: {
    operationId: "composeBatch",
    tags: ["Prompts"],
    summary: "Compose many prompts, planned together",
    description:
      "Answers are streamed in the order in which to send the prompts to the engine. `pretty` does not apply to the stream.",
    problems: BODY_PROBLEMS,
  },
  chat: {
    operationId: "createChatCompletion",
    tags: ["Chat"],
    summary: "Create a chat completion with the user's memories",
    description: "The answer is the engine's, unmodified; memstem adds headers.",
    problems: [...BODY_PROBLEMS, 501, 502, 504],
  },
  responses: {
    operationId: "createResponse",
    tags: ["Chat"],
    summary: "Create a response with the user's memories",
    description: "OpenAI's Responses API. The answer is the engine's, unmodified; memstem adds headers.",
    problems: [...BODY_PROBLEMS, 501, 502, 504],
  },
  models: {
    operationId: "listModels",
    tags: ["Chat"],
    summary: "List the engine's models",
    description: "The answer is the engine's, unmodified.",
    problems: [...REQUEST_PROBLEMS, 501, 502, 504],
  },
  messages: {
    operationId: "createMessage",
    tags: ["Messages"],
    summary: "Create a message with the user's memories",
    description: "Anthropic's API. The answer is the engine's, unmodified; memstem adds headers.",
    problems: [...BODY_PROBLEMS, 404, 501, 502, 504],
  },
  countTokens: {
    operationId: "countMessageTokens",
    tags: ["Messages"],
    summary: "Count a request's tokens",
    description: "Passed to the engine, without memories.",
    problems: [...BODY_PROBLEMS, 501, 502, 504],
  },
  evict: {
    operationId: "evict",
    tags: ["Cache"],
    summary: "Report evicted requests",
    description: "The engine dropped their cache: the index no longer expects hits from them.",
    problems: BODY_PROBLEMS,
  },
  feedback: {
    operationId: "feedback",
    tags: ["Cache"],
    summary: "Report what the engine cached",
    description: "Compares the engine's usage with the plan, and corrects the index.",
    problems: [...BODY_PROBLEMS, 404],
  },
  explain: { operationId: "explainRequest", ...ofUser.explain },
  explainByQuery: { operationId: "explainRequestByQuery", ...ofUser.explain, description: BY_QUERY },
  addMemories: {
    operationId: "addMemories",
    tags: ["Memories"],
    summary: "Add memories to the source",
    description: "Stores texts unmodified, without extraction by a model.",
    problems: [...BODY_PROBLEMS, 409, 501, 502, 504],
  },
  forgetMemory: { operationId: "forgetMemory", ...ofUser.forgetMemory },
  forgetMemoryByQuery: { operationId: "forgetMemoryByQuery", ...ofUser.forgetMemory, description: BY_QUERY },
  webhook: {
    operationId: "receiveMem0Event",
    tags: ["Memories"],
    summary: "Receive an event of the Mem0 platform",
    description: "DELETE forgets the memory; UPDATE never sends the old text again. Other events are ignored.",
    problems: [400, 408, 413, 415, 422, 429, 503],
  },
  index: { operationId: "getIndex", ...ofUser.index },
  indexByQuery: { operationId: "getIndexByQuery", ...ofUser.index, description: BY_QUERY },
  exportUser: { operationId: "exportUser", ...ofUser.export },
  exportUserByQuery: { operationId: "exportUserByQuery", ...ofUser.export, description: BY_QUERY },
  forgetUser: { operationId: "forgetUser", ...ofUser.forget },
  forgetUserByQuery: { operationId: "forgetUserByQuery", ...ofUser.forget, description: BY_QUERY },
  usageSummary: {
    operationId: "getUsageSummary",
    tags: ["Usage"],
    summary: "Sum up what prompts cost",
    description:
      "Cached shares, tokens, time to the first token and money over an hour, a day or a month, by model, engine and layout.",
    problems: USAGE_PROBLEMS,
  },
  usageMisses: {
    operationId: "getUsageMisses",
    tags: ["Usage"],
    summary: "Sum up misses by cause",
    description: "Shares of tokens and money, with what to do about each cause.",
    problems: USAGE_PROBLEMS,
  },
  usageRequests: {
    operationId: "listUsageRequests",
    tags: ["Usage"],
    summary: "List prompts",
    description: "Newest first. A page of a rare filter may be short, or empty, and have a next one.",
    problems: USAGE_PROBLEMS,
  },
  usageRequest: {
    operationId: "getUsageRequest",
    tags: ["Usage"],
    summary: "Show a prompt as bars",
    description:
      "Its parts by what became of them, beside the earlier prompt that it should have continued, and why it did not.",
    problems: [...USAGE_PROBLEMS, 404],
  },
  usageUsers: {
    operationId: "listUsageUsers",
    tags: ["Usage"],
    summary: "List users by their reuse",
    description: "Sums over the prompts that are kept, one entry for each agent.",
    problems: USAGE_PROBLEMS,
  },
  usageConversations: {
    operationId: "listUsageConversations",
    tags: ["Usage"],
    summary: "List conversations by their reuse",
    description: "Sums over the prompts that are kept.",
    problems: USAGE_PROBLEMS,
  },
  usageConversation: {
    operationId: "getUsageConversation",
    tags: ["Usage"],
    summary: "Show a conversation's turns and epochs",
    description: "Its newest prompts, and where epochs began.",
    problems: [...USAGE_PROBLEMS, 404],
  },
  usageAlerts: {
    operationId: "listUsageAlerts",
    tags: ["Usage"],
    summary: "List alert rules",
    description: "The tenant's rules of `MEMSTEM_ALERTS`, as they were last evaluated.",
    problems: USAGE_PROBLEMS,
  },
  usageEvents: {
    operationId: "streamUsageEvents",
    tags: ["Usage"],
    summary: "Follow prompts and notes",
    description:
      "Server-sent events of what any process records in the log, within about a quarter of a second, or a second where very many come. Where more prompts come than a reader can follow, the newest are sent and the others counted.",
    problems: USAGE_PROBLEMS,
  },
  usageNotes: {
    operationId: "addUsageNote",
    tags: ["Usage"],
    summary: "Note a deploy or a restart",
    description: "Shown in the summary of its time.",
    problems: [...BODY_PROBLEMS, 501],
  },
  health: {
    operationId: "getHealth",
    tags: ["Operations"],
    summary: "Check whether requests should be sent here",
    description: "Needs no key. 503 while the database does not answer, and while the service is stopping.",
    problems: [400, 422],
  },
  live: {
    operationId: "getLiveness",
    tags: ["Operations"],
    summary: "Check whether the process works",
    description: "Needs no key. Asks nothing of the database: one that is away is no reason to restart.",
    problems: [400, 422],
  },
  metrics: {
    operationId: "getMetrics",
    tags: ["Operations"],
    summary: "Read metrics",
    description: "Counters and gauges in Prometheus' format.",
    problems: [400, 401, 403, 421, 422, 429],
  },
} as const satisfies Record<string, Operation>;

/** The part of an operation that goes into the document unchanged. */
export function described({ operationId, tags, summary, description }: Operation) {
  return { operationId, tags: [...tags], summary, description };
}
