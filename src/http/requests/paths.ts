/*
 * The paths that more than one folder names, and how a path is cut from a request's target.
 */

/** Where a batch is composed. */
export const BATCH_PATH = "/compose/batch";

/** Where Mem0 says what happened to memories. */
export const WEBHOOK_PATH = "/webhooks/mem0";

/** Open to everybody: whether the service works, and how it is spoken to. No key's limits hold here. */
export const OPEN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/openapi.json"]);

/** What an operator looks at when there is too much to do. */
export const ALWAYS_ANSWERED: ReadonlySet<string> = new Set(["/healthz", "/metrics"]);

/** Where OpenAI's clients send their requests. */
const OPENAI_PATHS = "/v1/";

/** Whether a path is one of those that OpenAI's clients know. */
export function isOpenAiPath(path: string): boolean {
  return path.startsWith(OPENAI_PATHS);
}
/** What a request asks for (RFC 9112 §3.2), cut before its query. The query begins with its question mark, or is empty. */
export function cutTarget(target: string): { readonly path: string; readonly query: string } {
  const at = target.indexOf("?");
  return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at) };
}
