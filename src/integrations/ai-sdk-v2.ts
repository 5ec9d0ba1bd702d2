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
