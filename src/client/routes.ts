import type { UnmodifiedPaths } from "./wire-names.js";

/*
 * The routes of the service that the client calls, one for each of its methods. `/v1/…` is not among them: clients of OpenAI's and
 * Anthropic's APIs call it.
 */

/** One route. */
export interface Route {
  /** Ids of the operations in the OpenAPI document that the method stands for. Routes with ids in the path exist a second time with them in the query. */
  readonly operations: readonly string[];
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  /** Parts of options and answers whose keys are not ours. */
  readonly unmodified: UnmodifiedPaths;
  /** A field that every answer has: JSON without it is another server's. Absent: the answer is not read as JSON of ours. */
  readonly answers?: string;
  /**
   * Which failures are tried again. `all`: sent twice, it does the same. `rejected`: only where the service says that it rejected the request
   * before any work (429): sent twice, it would add twice.
   */
  readonly retried: "all" | "rejected";
}

/** The parts of a composed prompt, and of its request, whose keys are not ours. */
const OF_PROMPTS = ["messages", "memories", "filters", "system", "engine.fields", "engine.headers"];
const under = (path: string) => OF_PROMPTS.map((part) => `${path}.${part}`);

const BY_QUERY = { unmodified: [], retried: "all" } as const;

/** A view of the usage. */
function usage<V extends string>(operation: string, view: V, answers: string) {
  return { operations: [operation], method: "GET", path: `/usage/${view}`, ...BY_QUERY, answers } as const;
}

export const ROUTES = {
  compose: {
    operations: ["compose"],
    method: "POST",
    path: "/compose",
    unmodified: OF_PROMPTS,
    answers: "messages",
    retried: "all",
  },
  composeBatch: {
    operations: ["composeBatch"],
    method: "POST",
    path: "/compose/batch",
    unmodified: [...under("requests"), ...under("answers.answer")],
    answers: "answers",
    retried: "all",
  },
  /** The same route in lines: each line of the request is one of `/compose`. */
  composeLines: {
    operations: ["composeBatch"],
    method: "POST",
    path: "/compose/batch",
    unmodified: [...OF_PROMPTS, ...under("answer")],
    retried: "all",
  },
  add: {
    operations: ["addMemories"],
    method: "POST",
    path: "/memories",
    unmodified: ["memories", "metadata"],
    answers: "results",
    retried: "rejected",
  },
  evict: {
    operations: ["evict"],
    method: "POST",
    path: "/evict",
    unmodified: [],
    answers: "evicted",
    retried: "all",
  },
  feedback: {
    operations: ["feedback"],
    method: "POST",
    path: "/feedback",
    unmodified: [],
    answers: "request_id",
    retried: "all",
  },
  receiveMem0Event: {
    operations: ["receiveMem0Event"],
    method: "POST",
    path: "/webhooks/mem0",
    unmodified: [],
    retried: "all",
  },
  explain: {
    operations: ["explainRequest", "explainRequestByQuery"],
    method: "GET",
    path: "/request/explain",
    ...BY_QUERY,
    answers: "request_id",
  },
  describeIndex: {
    operations: ["getIndex", "getIndexByQuery"],
    method: "GET",
    path: "/user/index",
    ...BY_QUERY,
    answers: "nodes",
  },
  exportUser: {
    operations: ["exportUser", "exportUserByQuery"],
    method: "GET",
    path: "/user/export",
    retried: "all",
    unmodified: ["scopes.scope", "scopes.tables", "source.memories.metadata"],
    answers: "scopes",
  },
  usageSummary: usage("getUsageSummary", "summary", "points"),
  usageMisses: usage("getUsageMisses", "misses", "causes"),
  usageRequests: usage("listUsageRequests", "requests", "requests"),
  usageRequest: usage("getUsageRequest", "request", "bars"),
  usageUsers: usage("listUsageUsers", "users", "users"),
  usageConversations: usage("listUsageConversations", "conversations", "conversations"),
  usageConversation: usage("getUsageConversation", "conversation", "epochs"),
  usageAlerts: usage("listUsageAlerts", "alerts", "rules"),
  usageEvents: { operations: ["streamUsageEvents"], method: "GET", path: "/usage/events", ...BY_QUERY },
  addUsageNote: {
    operations: ["addUsageNote"],
    method: "POST",
    path: "/usage/notes",
    unmodified: [],
    answers: "kind",
    retried: "rejected",
  },
  forgetMemory: {
    operations: ["forgetMemory", "forgetMemoryByQuery"],
    method: "DELETE",
    path: "/user/memory",
    ...BY_QUERY,
    answers: "memory_id",
  },
  forgetUser: {
    operations: ["forgetUser", "forgetUserByQuery"],
    method: "DELETE",
    path: "/user",
    ...BY_QUERY,
    answers: "user_id",
  },
  health: { operations: ["getHealth"], method: "GET", path: "/healthz", ...BY_QUERY, answers: "status" },
  live: { operations: ["getLiveness"], method: "GET", path: "/livez", ...BY_QUERY, answers: "status" },
  metrics: { operations: ["getMetrics"], method: "GET", path: "/metrics", ...BY_QUERY },
  openapi: { operations: [], method: "GET", path: "/openapi.json", ...BY_QUERY },
} as const satisfies Readonly<Record<string, Route>>;
