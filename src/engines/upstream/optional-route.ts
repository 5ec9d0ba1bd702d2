import { mayBeAbsent, saysAbsent } from "./absent-route.js";
import { oneChunk, wholeOf } from "./converted-body.js";
import type { Upstream, UpstreamAnswer, UpstreamCall } from "./upstream.js";

/** Milliseconds for which an engine counts as one without the route: it may be replaced. */
const ABSENT_FOR_MS = 10 * 60 * 1_000;

/** A route that an engine may have or not, which is found out by a request. */
export class OptionalRoute {
  #absentUntil = Number.NEGATIVE_INFINITY;

  /** @param now milliseconds since the epoch */
  constructor(
    private readonly upstream: Upstream,
    private readonly now: () => number,
  ) {}

  /** The engine's answer; null where it has no such route: then it is not asked again for ten minutes. Rejects as {@link Upstream.send}. */
  async send(call: UpstreamCall, signal: AbortSignal): Promise<UpstreamAnswer | null> {
    if (this.now() < this.#absentUntil) return null;
    const answer = await this.upstream.send(call, signal);
    if (!mayBeAbsent(answer.status)) return answer;
    const whole = await wholeOf(answer.body, this.upstream.name);
    if (!saysAbsent(answer.status, whole.toString("utf8"))) return { ...answer, body: oneChunk(whole) };
    this.#absentUntil = this.now() + ABSENT_FOR_MS;
    return null;
  }
}
