export interface Route {
  /** The operation's id in the OpenAPI document. */
  readonly operation: string;
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  /** A field of every answer: JSON without it is another server's. */
  readonly answers: string;
  readonly unmodified: readonly string[];
}

function route(
  operation: string,
  at: `${Route["method"]} /${string}`,
  answers: string,
  unmodified: readonly string[] = [],
): Route {
  const [method, path] = at.split(" ") as [Route["method"], string];
  return { operation, method, path, answers, unmodified };
}

const OF_PROMPTS = ["messages", "memories", "search.filters", "system", "tools", "engine.fields", "engine.headers"];
const under = (path: string) => OF_PROMPTS.map((part) => `${path}.${part}`);
const OF_BATCHES = [...under("requests"), ...under("answers.answer")];
const OF_EXPORTS = ["scopes.scope", "scopes.tables", "source.memories.metadata"];

export const ROUTES = {
  compose: route("compose", "POST /compose", "messages", OF_PROMPTS),
  composeBatch: route("composeBatch", "POST /compose/batch", "answers", OF_BATCHES),
  add: route("addMemories", "POST /memories", "results", ["memories", "messages", "metadata"]),
  memories: route("listMemories", "GET /memories", "results"),
  evict: route("evict", "POST /evict", "evicted"),
  feedback: route("feedback", "POST /feedback", "request_id"),
  explain: route("explainRequest", "GET /request/explain", "request_id"),
  exportUser: route("exportUser", "GET /user/export", "scopes", OF_EXPORTS),
  usageSummary: route("getUsageSummary", "GET /usage/summary", "points"),
  usageRequests: route("listUsageRequests", "GET /usage/requests", "requests"),
  usageRequest: route("getUsageRequest", "GET /usage/request", "explanation"),
  forgetMemory: route("forgetMemory", "DELETE /user/memory", "memory_id"),
  forgetUser: route("forgetUser", "DELETE /user", "user_id"),
  health: route("getHealth", "GET /healthz", "status"),
};
