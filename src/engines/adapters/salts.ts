import { isObject, type JsonObject } from "../../core/text/json.js";

/**
 * Fields by which a request chooses its part of an engine's cache: the salt of vLLM, SGLang and TensorRT-LLM, SGLang's key, and the key of OpenAI,
 * Mistral and xAI.
 */
const SALTS: ReadonlySet<string> = new Set(["cache_salt", "extra_key", "prompt_cache_key"]);

/** Content, and schemas, whose fields have any name. */
const CONTENT: ReadonlySet<string> = new Set([
  ...["messages", "input", "prompt", "system", "instructions", "documents", "metadata"],
  ...["tools", "functions", "response_format", "text"],
]);

/**
 * Replaces the salts that a body names, also nested as in `extra_body`, so that no client chooses another tenant's cache. Empty ones are
 * removed: they would replace the tenant's. Without salts, returns the same object.
 *
 * @param digest makes the tenant's own salt of the client's
 */
export function withOwnSalts<T>(body: T, digest: (name: string, salt: unknown) => string): T {
  if (Array.isArray(body))
    return unlessSame(
      body,
      body.map((item: unknown) => withOwnSalts(item, digest)),
    ) as T;
  if (!isObject(body)) return body;
  const entries = Object.entries(body as JsonObject).flatMap(([name, value]): [string, unknown][] => {
    if (SALTS.has(name)) return isEmpty(value) ? [] : [[name, ownSalt(name, value, digest)]];
    return [[name, CONTENT.has(name) ? value : withOwnSalts(value, digest)]];
  });
  const isSame =
    entries.length === Object.keys(body).length &&
    entries.every(([name, value]) => (body as JsonObject)[name] === value);
  return isSame ? body : (Object.fromEntries(entries) as T);
}

/** SGLang takes one for each prompt of a batch. */
function ownSalt(name: string, salt: unknown, digest: (name: string, salt: unknown) => string): unknown {
  return Array.isArray(salt) ? salt.map((one: unknown) => digest(name, one)) : digest(name, salt);
}

function isEmpty(salt: unknown): boolean {
  return salt === null || salt === undefined || salt === "" || (Array.isArray(salt) && salt.length === 0);
}

function unlessSame(own: readonly unknown[], changed: readonly unknown[]): readonly unknown[] {
  return changed.every((item, at) => item === own[at]) ? own : changed;
}
