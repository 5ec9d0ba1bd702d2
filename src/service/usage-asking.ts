import type { UpstreamAnswer } from "../engines/upstream.js";
import { hold } from "./held-body.js";

/** How long an engine that refuses to be asked for a model's usage is not asked again: it may be another version by then. */
const ASK_AGAIN_AFTER_MS = 10 * 60_000;
/** Clients name models as they like; those refused longest ago are asked for anew. */
const MAX_MODELS = 256;
/** Statuses by which engines refuse a field of a request. */
const REFUSED = new Set([400, 422]);
/** Bytes of a refusal that are read. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/** What a request asks, as its client sent it. */
type Asked = Readonly<Record<string, unknown>>;

/**
 * Asks for the usage of a stream whose client did not (`stream_options`), and goes without where the engine refuses that. Whether it does is
 * judged by the same request without it, sent once: only where that succeeds it was the cause. What is learned from it is one
 * tenant's and one model's, and for a while: a client may have had a hand in it, by an image, say, that its own server gives out the
 * second time only.
 */
export class UsageAsking {
  /** When it may be asked again, in the clock's milliseconds, by model. A tenant's goes with the tenant. */
  readonly #refused = new WeakMap<object, Map<string, number>>();

  /** @param clock milliseconds, monotonic */
  constructor(private readonly clock: () => number) {}

  /**
   * @param tenant whose request it is: the same object for all of one tenant's
   * @param own what the client asked
   * @param body what is to be sent of it
   * @returns the answer, and whether the usage was asked for where the client did not
   */
  async send(
    tenant: object,
    own: Asked,
    body: object,
    send: (body: object) => Promise<UpstreamAnswer>,
  ): Promise<{ readonly answer: UpstreamAnswer; readonly asksUsage: boolean }> {
    const asksUsage = own["stream"] === true && own["stream_options"] == null && !this.#isRefused(tenant, modelOf(own));
    if (!asksUsage) return { answer: await send(body), asksUsage };
    const answer = await send({ ...body, stream_options: { include_usage: true } });
    if (!REFUSED.has(answer.status)) return { answer, asksUsage };
    const held = await hold(answer.body, MAX_HELD_BYTES);
    if (held.whole?.includes("stream_options") !== true) return { answer: { ...answer, body: held.body }, asksUsage };
    const without = await send(body);
    if (without.status < 300) this.#refuses(tenant, modelOf(own));
    return { answer: without, asksUsage: false };
  }

  #isRefused(tenant: object, model: string): boolean {
    return this.clock() < (this.#refused.get(tenant)?.get(model) ?? Number.NEGATIVE_INFINITY);
  }

  #refuses(tenant: object, model: string): void {
    const models = this.#refused.get(tenant) ?? new Map<string, number>();
    this.#refused.set(tenant, models);
    models.delete(model);
    models.set(model, this.clock() + ASK_AGAIN_AFTER_MS);
    const [oldest] = models.keys();
    if (models.size > MAX_MODELS && oldest !== undefined) models.delete(oldest);
  }
}

function modelOf({ model }: Asked): string {
  return typeof model === "string" ? model.slice(0, 200) : "";
}
