import type { UpstreamAnswer } from "../../engines/upstream/upstream.js";
import { RefusedModels } from "../learning/refused-models.js";
import { bufferBody } from "./buffered-body.js";

/** Statuses with which engines refuse a field of a request. */
const REFUSED = new Set([400, 422]);
/** Bytes of a refusal that are read. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;

/** A request's body, as its client sent it. */
type Asked = Readonly<Record<string, unknown>>;

/**
 * Asks for the usage of a stream (`stream_options.include_usage`) where the client did not. Where the engine refuses, the request is sent
 * once more without it; only if that succeeds was the option the cause. Even then the client may have caused it, say by an image that its
 * server delivers on the second request only: see {@link RefusedModels}.
 */
export class StreamUsage {
  readonly #refused: RefusedModels;

  /** @param clock milliseconds, monotonic */
  constructor(clock: () => number) {
    this.#refused = new RefusedModels(clock);
  }

  /**
   * @param tenant the request's tenant: the same object for all of one tenant's requests
   * @param own the client's body
   * @param body the body to send
   * @returns the answer, and whether the usage was added to what the client asked for
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
