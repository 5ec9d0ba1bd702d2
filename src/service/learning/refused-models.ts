import { LruMap } from "../../core/index.js";

/** Milliseconds until a refused option is tried again: the engine may be another version by then. */
const ASK_AGAIN_AFTER_MS = 10 * 60_000;
/** Models remembered: clients choose the names, so the least recently used is forgotten. */
const MAX_MODELS = 256;

/**
 * Models for which an engine refused an option that memstem added. Kept per tenant and model, and only for a while: a client may have caused
 * the refusal.
 */
export class RefusedModels {
  /** By tenant and model, when to try again, in the clock's milliseconds. */
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

/** Characters of a model's name that are compared. */
const MODEL_CHARACTERS = 200;

/** The model that a client's body names, truncated to what is compared; empty for none. */
export function modelName(model: unknown): string {
  return typeof model === "string" ? model.slice(0, MODEL_CHARACTERS) : "";
}
