import { LruMap } from "../../core/text/collections.js";
import { wholeOf } from "./answer-body.js";
import { OWN_NAME, type Upstream } from "./upstream.js";

/** Statuses with which servers say that they have no route. */
const ABSENT: ReadonlySet<number> = new Set([404, 405, 501]);
/** Milliseconds until a route that was absent is tried again: the engine may be replaced. */
const ABSENT_FOR_MS = 10 * 60 * 1_000;
/** Models for which it is known at a time that the route is absent. */
const MOST_MODELS = 1_000;

/** A route that an engine may lack, beside its API: for each model, since a gateway has an engine for each. */
export class OptionalRoute {
  readonly #absentUntil = new LruMap<string, number>(MOST_MODELS);

  /** @param now milliseconds since the epoch */
  constructor(
    private readonly upstream: Upstream,
    private readonly now: () => number,
  ) {}

  /**
   * What the engine says there; null where it has no such route, or answers otherwise than with 200. Rejects as {@link Upstream.send}, and where
   * there are more than `most` bytes.
   *
   * @param body posted; null: nothing is
   * @param model the model that the body names; empty for none
   */
  async read(
    path: string,
    signal: AbortSignal,
    {
      body = null,
      model = "",
      most,
    }: { readonly body?: string | null; readonly model?: string; readonly most?: number },
  ): Promise<string | null> {
    if (this.now() < (this.#absentUntil.get(model) ?? Number.NEGATIVE_INFINITY)) return null;
    const method = body === null ? "GET" : "POST";
    const call = { method, path, query: "", headers: [OWN_NAME], body, isBackground: true } as const;
    const answer = await this.upstream.send(call, signal);
    const whole = await wholeOf(answer.body, this.upstream.name, most);
    if (ABSENT.has(answer.status)) this.#absentUntil.set(model, this.now() + ABSENT_FOR_MS);
    return answer.status === 200 ? whole : null;
  }
}
