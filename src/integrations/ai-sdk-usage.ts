import type { ReportedUsage } from "./composing.js";

/**
 * The usage of an answer, in tokens. Versions 3 and 4 say `inputTokens.total` and `.cacheRead`; version 2 says `inputTokens` and
 * `cachedInputTokens`. Some providers of version 2 leave the cached tokens out of the former, also where `ai` 7 converts their answers; so
 * the total counts only where the provider says what of it was not cached, which those of version 3 do.
 */
export function usageIn(usage: unknown): ReportedUsage {
  const { inputTokens, cachedInputTokens } = (usage ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof inputTokens !== "object" || inputTokens === null) return counts(undefined, cachedInputTokens);
  const { total, noCache, cacheRead } = inputTokens as Readonly<Record<string, unknown>>;
  return counts(noCache === undefined ? undefined : total, cacheRead);
}

function counts(prompt: unknown, cached: unknown): ReportedUsage {
  const promptTokens = count(prompt);
  const cachedTokens = count(cached);
  return {
    ...(promptTokens === null ? {} : { promptTokens }),
    ...(cachedTokens === null ? {} : { cachedTokens }),
  };
}

/** Null where an answer says nothing, which is not zero. */
function count(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** Kinds of a stream's chunks that have the model's first token. */
const TOKENS: ReadonlySet<string> = new Set([
  ...["text-delta", "reasoning-delta", "tool-input-start", "tool-input-delta", "tool-call", "file"],
]);

/** Reads a stream: the time to its first token, and its usage. */
export class StreamReader {
  #firstTokenAt: number | null = null;
  #hasFailed = false;

  /** @param started when it was asked for, in milliseconds of the clock that `take` is told */
  constructor(private readonly started: number) {}

  /** What there is to report once the chunk that ends an answer came; null: nothing, or not yet. */
  take(chunk: { readonly type: string; readonly usage?: unknown }, now: number): ReportedUsage | null {
    const { type } = chunk;
    if (type === "error") this.#hasFailed = true;
    if (TOKENS.has(type)) this.#firstTokenAt ??= now;
    if (type !== "finish" || this.#hasFailed) return null;
    const ttft = this.#firstTokenAt === null ? {} : { ttftMs: this.#firstTokenAt - this.started };
    return { ...usageIn(chunk.usage), ...ttft };
  }
}
