import type { z } from "zod";
import { JsonLines } from "../src/eval/base/run-files.js";
import { installAll } from "../test/real-engines/install.js";
import type { MODELS } from "../test/real-engines/packages.js";
import { serving } from "../test/real-engines/serving.js";

type EngineModelName = (typeof MODELS)[number];

/** What a long run has measured so far, by key; kept in a file of JSON lines where one is named, so that a run goes on from there. */
export class KeptRecords<T> {
  readonly #known: Map<string, T>;
  readonly #file: JsonLines<z.ZodType<T>> | null;

  constructor(
    file: string | undefined,
    schema: z.ZodType<T>,
    private readonly keyOf: (one: T) => string,
  ) {
    this.#file = file === undefined ? null : new JsonLines(file, schema);
    this.#known = new Map((this.#file?.kept ?? []).map((one) => [keyOf(one), one]));
  }

  get all(): readonly T[] {
    return [...this.#known.values()];
  }

  has(key: string): boolean {
    return this.#known.has(key);
  }

  /** Measures what is missing, on a vLLM of its own. */
  async complete<P>(
    missing: readonly P[],
    { model, contextTokens }: { readonly model: EngineModelName; readonly contextTokens: number },
    measure: (url: string, place: P) => Promise<T>,
  ): Promise<void> {
    if (missing.length === 0) return;
    await installAll();
    const engine = await serving({ engine: "vllm", model, contextTokens });
    try {
      for (const place of missing) this.#keep(await measure(engine.url, place));
    } finally {
      await engine.kill();
    }
  }

  #keep(one: T): void {
    this.#known.set(this.keyOf(one), one);
    this.#file?.append(one);
  }
}
