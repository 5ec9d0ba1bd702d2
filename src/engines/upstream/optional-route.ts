import { LruMap } from "../../core/text/collections.js";
import { wholeOf } from "./answer-body.js";
import { OWN_NAME, type Upstream } from "./upstream.js";

const ABSENT: ReadonlySet<number> = new Set([404, 405, 501]);
/** The engine may be replaced. */
const ABSENT_FOR_MS = 10 * 60 * 1_000;
const MOST_MODELS = 1_000;

/** A route that an engine may lack. Remembered by model, because a gateway has an engine for each. */
export class OptionalRoute {
  readonly #absentUntil = new LruMap<string, number>(MOST_MODELS);

  constructor(
    private readonly upstream: Upstream,
    private readonly now: () => number,
  ) {}

  /** The body of a 200; null for any other status. Rejects as {@link Upstream.send}, and for more than `most` bytes. */
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
