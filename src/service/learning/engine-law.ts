import { type EngineModel, fitTimeLaw, KEPT_SAMPLES, type TimeLaw } from "../../core/index.js";
import type { EngineReport, Store } from "../../store/api/store.js";

/** New samples between two fits of the law. */
const TIMES_BETWEEN_FITS = 8;

/**
 * The engine's cost model: the configured one, until enough times to first token were measured to fit a time law. A function of stored
 * samples only, so another process, or the next one, plans by the same law. A model of prices is never replaced.
 */
export class EngineLaw {
  #fitted: { readonly count: number; readonly law: TimeLaw | null } = { count: 0, law: null };

  constructor(
    private readonly store: Store,
    /** Key of the engine's samples in the database. */
    private readonly engine: string,
    private readonly configured: EngineModel,
  ) {}

  /** Reads the law from the store when `cost` is first used: few prompts need it. */
  get model(): EngineModel {
    const { configured } = this;
    const measured = () => this.law ?? configured.cost;
    let cost: EngineModel["cost"] | undefined;
    return {
      ...configured,
      get cost() {
        cost ??= measured();
        return cost;
      },
    };
  }

  /** The fitted law; null while the configured one is used. */
  get law(): TimeLaw | null {
    if (this.configured.cost.kind !== "time") return null;
    const measured = this.store.countFirstTokenTimes(this.engine);
    const count = measured - (measured % TIMES_BETWEEN_FITS);
    if (count !== this.#fitted.count) {
      const law = fitTimeLaw(this.store.firstTokenTimes(this.engine, count, KEPT_SAMPLES));
      this.#fitted = { count, law };
    }
    return this.#fitted.law;
  }

  /** Adds a report as a sample, where it has a time to first token and both token counts. */
  take({ promptTokens, cachedTokens, ttftMs }: EngineReport): void {
    if (promptTokens === undefined || cachedTokens === undefined || ttftMs === undefined) return;
    if (cachedTokens > promptTokens || ttftMs <= 0) return;
    const time = { uncachedTokens: promptTokens - cachedTokens, cachedTokens, ms: ttftMs };
    this.store.keepFirstTokenTime(this.engine, time, KEPT_SAMPLES + TIMES_BETWEEN_FITS);
  }
}
