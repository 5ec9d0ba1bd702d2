import { record } from "../core/text/json.js";
import { countOf, type ReportedUsage } from "./composing.js";

/** An answer, or the chunk that ends a stream, as far as it says what it used. */
interface UsedAnswer {
  readonly usage?: unknown;
  readonly providerMetadata?: unknown;
}

/** Providers of version 2 whose `inputTokens` leave the cached tokens out, as their metadata name them. */
const WITHOUT_CACHED = ["anthropic", "bedrock"];

/**
 * The usage of an answer, in tokens. Versions 3 and 4 say `inputTokens.total` and `.cacheRead`; version 2 says `inputTokens` and
 * `cachedInputTokens`, also where `ai` 7 gives its answers the form of version 4: nothing is said there of tokens that were not cached.
 */
export function usageIn({ usage, providerMetadata }: UsedAnswer): ReportedUsage {
  const { inputTokens, cachedInputTokens } = record(usage);
  const isVersion2 = typeof inputTokens !== "object";
  const { total, noCache, cacheRead } = isVersion2
    ? { total: inputTokens, cacheRead: cachedInputTokens }
    : record(inputTokens);
  const isPartial = noCache === undefined && WITHOUT_CACHED.some((name) => name in record(providerMetadata));
  const promptTokens = isPartial ? null : countOf(total);
  const cachedTokens = countOf(cacheRead);
  return {
    ...(promptTokens === null || promptTokens < (cachedTokens ?? 0) ? {} : { promptTokens }),
    ...(cachedTokens === null ? {} : { cachedTokens }),
  };
}

/** Kinds of a stream's chunks that have the model's first token. */
const TOKENS: ReadonlySet<string> = new Set([
  ...["text-delta", "reasoning-delta", "tool-input-start", "tool-input-delta", "tool-call", "file"],
]);

/** Reads a stream: the time to its first token, and its usage. */
export class StreamReader {
  #firstTokenAt: number | null = null;
  #hasFailed = false;

  /** @param started when it was asked for, in milliseconds of the clock that `take` gets */
  constructor(private readonly started: number) {}

  /** What there is to report once the chunk that ends an answer came; null: nothing, or not yet. */
  take(chunk: UsedAnswer & { readonly type: string }, now: number): ReportedUsage | null {
    const { type } = chunk;
    if (type === "error") this.#hasFailed = true;
    if (TOKENS.has(type)) this.#firstTokenAt ??= now;
    if (type !== "finish" || this.#hasFailed) return null;
    const ttft = this.#firstTokenAt === null ? {} : { ttftMs: this.#firstTokenAt - this.started };
    return { ...usageIn(chunk), ...ttft };
  }
}

/*
 * Models of the interface's version 2 under `ai` 6, which converts their answers only where no middleware wraps them. `ai` 7 converts them
 * itself, before a middleware sees them.
 */

/** A model, by the version of the interface that it implements. */
interface VersionedModel {
  readonly specificationVersion: string;
}

/** An answer, or the chunk that ends a stream. */
interface Finished {
  readonly type?: string;
  readonly finishReason?: unknown;
  readonly usage?: unknown;
}

/** A whole answer in version 3's form; of other models than version 2's, the same object. */
export function asV3Result<R extends Finished>(result: R, { specificationVersion }: VersionedModel): R {
  return specificationVersion === "v2" ? asV3(result) : result;
}

/** A stream in version 3's form; of other models than version 2's, the same one. */
export function asV3Stream<C extends Finished>(
  stream: ReadableStream<C>,
  { specificationVersion }: VersionedModel,
): ReadableStream<C> {
  if (specificationVersion !== "v2") return stream;
  return stream.pipeThrough(
    new TransformStream<C, C>({
      transform: (chunk, controller) => controller.enqueue(asV3Chunk(chunk)),
    }),
  );
}

function asV3Chunk<C extends Finished>(chunk: C): C {
  return chunk.type === "finish" ? asV3(chunk) : chunk;
}

function asV3<F extends Finished>(finished: F): F {
  const { finishReason, usage } = finished;
  return {
    ...finished,
    ...(typeof finishReason === "string" ? { finishReason: { unified: finishReason, raw: finishReason } } : {}),
    usage: usageAsV3((usage ?? {}) as Readonly<Record<string, unknown>>),
  };
}

function usageAsV3({
  inputTokens,
  cachedInputTokens,
  outputTokens,
  reasoningTokens,
}: Readonly<Record<string, unknown>>) {
  return {
    inputTokens: { total: inputTokens, cacheRead: cachedInputTokens },
    outputTokens: { total: outputTokens, reasoning: reasoningTokens },
  };
}
