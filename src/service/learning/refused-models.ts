import { LruMap } from "../../core/index.js";
import { modelName } from "./model-name.js";

/** How long what an engine refused is not asked for again: it may be another version by then. */
const ASK_AGAIN_AFTER_MS = 10 * 60_000;
/** Clients name models as they like; those refused longest ago are asked for anew. */
const MAX_MODELS = 256;

/**
 * Models of which an engine refused something that no client asked for. What is learned is one tenant's and one model's, and for a while: a
 * client may have had a hand in the refusal.
 */
export class RefusedModels {
  /** When it may be asked again, in the clock's milliseconds, by model. A tenant's goes with the tenant. */
  readonly #until = new WeakMap<object, LruMap<string, number>>();

  /** @param clock milliseconds, monotonic */
  constructor(private readonly clock: () => number) {}

  /**
   * @param tenant whose request it is: the same object for all of one tenant's
   * @param asked the client's body
   */
  has(tenant: object, asked: Readonly<Record<string, unknown>>): boolean {
    return this.clock() < (this.#until.get(tenant)?.get(modelName(asked["model"])) ?? Number.NEGATIVE_INFINITY);
  }

  add(tenant: object, asked: Readonly<Record<string, unknown>>): void {
    const models = this.#until.get(tenant) ?? new LruMap<string, number>(MAX_MODELS);
    this.#until.set(tenant, models);
    models.set(modelName(asked["model"]), this.clock() + ASK_AGAIN_AFTER_MS);
  }
}
