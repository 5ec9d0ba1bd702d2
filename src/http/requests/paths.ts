/*
 * Paths that more than one folder names, and how a request's target is split.
 */

/** Composes a batch. */
export const BATCH_PATH = "/compose/batch";

/** Takes Mem0's events. */
export const WEBHOOK_PATH = "/webhooks/mem0";

/** Open without a key, and under no key's limits: health, and the OpenAPI document. */
export const OPEN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/openapi.json"]);

/** Answered even when the service is overloaded or stopping: what an operator reads then. */
export const ALWAYS_ANSWERED: ReadonlySet<string> = new Set(["/healthz", "/metrics"]);

/** Prefix of the OpenAI-compatible paths. */
const OPENAI_PATHS = "/v1/";

/** Whether a path is OpenAI-compatible. */
export function isOpenAiPath(path: string): boolean {
  return path.startsWith(OPENAI_PATHS);
}
/** Splits a request target (RFC 9112 §3.2) into path and query. The query starts with `?`, or is empty. */
export function cutTarget(target: string): { readonly path: string; readonly query: string } {
  const at = target.indexOf("?");
  return at < 0 ? { path: target, query: "" } : { path: target.slice(0, at), query: target.slice(at) };
}
