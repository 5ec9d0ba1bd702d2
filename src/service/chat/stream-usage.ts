import type { UpstreamAnswer } from "../../engines/upstream/upstream.js";
import { RefusedModels } from "../learning/refused-models.js";
import { bufferBody } from "./buffered-body.js";

/** Statuses by which engines refuse a field of a request. */
const REFUSED = new Set([400, 422]);
/** Bytes of a refusal that are read. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/** What a request asks, as its client sent it. */
type Asked = Readonly<Record<string, unknown>>;

/**
 * Asks for the usage of a stream whose client did not (`stream_options`), and goes without where the engine refuses that. Whether it does is
 * judged by the same request without it, sent once: only where that succeeds it was the cause. Even then a client may have had a hand in
 * it, by an image, say, that its own server gives out the second time only: see {@link RefusedModels}.
 */
export class StreamUsage {
  readonly #refused: RefusedModels;

  /** @param clock milliseconds, monotonic */
  constructor(clock: () => number) {
    this.#refused = new RefusedModels(clock);
  }

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
  ): Promise<{ readonly answer: UpstreamAnswer; readonly isUsageAdded: boolean }> {
    const isUsageAdded = own["stream"] === true && own["stream_options"] == null && !this.#refused.has(tenant, own);
    if (!isUsageAdded) return { answer: await send(body), isUsageAdded };
    const answer = await send({ ...body, stream_options: { include_usage: true } });
    if (!REFUSED.has(answer.status)) return { answer, isUsageAdded };
    const held = await bufferBody(answer.body, MAX_HELD_BYTES);
    if (held.whole?.includes("stream_options") !== true)
      return { answer: { ...answer, body: held.body }, isUsageAdded };
    const without = await send(body);
    if (without.status < 300) this.#refused.add(tenant, own);
    return { answer: without, isUsageAdded: false };
  }
}
