import { type EngineModel, fitTimeLaw, KEPT_SAMPLES, type TimeLaw } from "../../core/index.js";
import type { EngineReport, Store } from "../../store/api/store.js";

/** Measured times that come in before the law is fitted anew. */
const TIMES_BETWEEN_FITS = 8;

/**
 * What prompts cost the engine: as configured until enough first-token times were measured, from then on by the law fitted to them. A
 * function of what is stored, so that a restart, or another process on the same database, plans by the same law. Engines that are
 * billed keep their prices.
 */
export class EngineLaw {
  #fitted: { readonly count: number; readonly law: TimeLaw | null } = { count: 0, law: null };

  constructor(
    private readonly store: Store,
    /** Names the engine among all that report to this database. */
    private readonly engine: string,
    private readonly configured: EngineModel,
  ) {}

  /** The store is asked for the law when the cost is first looked at: few prompts need it. */
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

  /** The law that was measured; null while the configured one holds. */
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

  /** Takes in what an engine reported of a request, if that was a time and all that belongs to it. */
  take({ promptTokens, cachedTokens, ttftMs }: EngineReport): void {
    if (promptTokens === undefined || cachedTokens === undefined || ttftMs === undefined) return;
    if (cachedTokens > promptTokens || ttftMs <= 0) return;
    const time = { uncachedTokens: promptTokens - cachedTokens, cachedTokens, ms: ttftMs };
    this.store.keepFirstTokenTime(this.engine, time, KEPT_SAMPLES + TIMES_BETWEEN_FITS);
  }
}
