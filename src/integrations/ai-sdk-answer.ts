import { record } from "../core/text/json.js";
import { countOf, type ReportedUsage } from "./composing.js";

interface UsedAnswer {
  readonly usage?: unknown;
  readonly providerMetadata?: unknown;
}

/** Version 2 providers, named as in their metadata, whose `inputTokens` exclude cached tokens. */
const WITHOUT_CACHED = ["anthropic", "bedrock"];

/** Versions 3 and 4 have `inputTokens.total` and `.cacheRead`; version 2 and `ai` 7's conversion of it have `cachedInputTokens`. */
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

const TOKENS: ReadonlySet<string> = new Set([
  ...["text-delta", "reasoning-delta", "tool-input-start", "tool-input-delta", "tool-call", "file"],
]);

export class StreamReader {
  #firstTokenAt: number | null = null;
  #hasFailed = false;

  /** `started`: in milliseconds of the clock that `take` gets. */
  constructor(private readonly started: number) {}

  /** The report, with the chunk that ends an answer; null for other chunks. */
  take(chunk: UsedAnswer & { readonly type: string }, now: number): ReportedUsage | null {
    const { type } = chunk;
    if (type === "error") this.#hasFailed = true;
    if (TOKENS.has(type)) this.#firstTokenAt ??= now;
    if (type !== "finish" || this.#hasFailed) return null;
    const ttft = this.#firstTokenAt === null ? {} : { ttftMs: this.#firstTokenAt - this.started };
    return { ...usageIn(chunk), ...ttft };
  }
}

/* `ai` 6 converts answers of version 2 models only without a middleware. `ai` 7 converts them before a middleware sees them. */

interface VersionedModel {
  readonly specificationVersion: string;
}

interface Finished {
  readonly type?: string;
  readonly finishReason?: unknown;
  readonly usage?: unknown;
}

export function asV3Result<R extends Finished>(result: R, { specificationVersion }: VersionedModel): R {
  return specificationVersion === "v2" ? asV3(result) : result;
}

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
