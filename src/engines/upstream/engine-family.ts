import { listIn, parsedJson, record, text } from "../../core/text/json.js";
import { wholeOf } from "./answer-body.js";
import { OWN_NAME, type Upstream } from "./upstream.js";

const TIMEOUT_MS = 2_000;
/** Until an engine that could not be reached is asked again. */
const RETRY_MS = 15_000;
const MOST_BYTES = 8 * 1024 * 1024;

/** Families whose engines name themselves: as the owner of their models, and as the prefix of their metrics. */
const FAMILIES = ["vllm", "sglang", "llamacpp"] as const;
export type NamedFamily = (typeof FAMILIES)[number];

/** The family by the JSON of `GET /v1/models`; null: it does not say, or several do. */
export function familyOfModels(json: unknown): NamedFamily | null {
  const owners = new Set([...listIn(record(json)["data"] ?? json)].map((model) => text(record(model)["owned_by"])));
  const [owner] = owners;
  return owners.size === 1 ? (FAMILIES.find((family) => family === owner) ?? null) : null;
}

/** The family by the text of `GET /metrics`; null: it does not say. */
export function familyOfMetrics(exposition: string): NamedFamily | null {
  return FAMILIES.find((family) => exposition.startsWith(`${family}:`) || exposition.includes(`\n${family}:`)) ?? null;
}

/** The family of an engine, by what it says of itself; `name` is null as long as that is unknown. */
export class RecognisedFamily {
  #name: NamedFamily | null = null;
  readonly #ending = new AbortController();

  get name(): NamedFamily | null {
    return this.#name;
  }

  /**
   * Requests the engine's list of models, then its metrics, within two seconds; if it cannot be reached, again in the background until it can.
   *
   * @param onRecognised called for a family that is recognised in the background
   */
  async ask(upstream: Upstream, onRecognised: (family: NamedFamily) => void, retryMs = RETRY_MS): Promise<void> {
    const isReached = await this.#askOnce(upstream);
    if (isReached || this.#ending.signal.aborted) return;
    const timer = setInterval(async () => {
      if (!(await this.#askOnce(upstream))) return;
      clearInterval(timer);
      if (this.#name !== null) onRecognised(this.#name);
    }, retryMs);
    timer.unref();
    this.#ending.signal.addEventListener("abort", () => clearInterval(timer));
  }

  stop(): void {
    this.#ending.abort();
  }

  /** Whether the engine answered. */
  async #askOnce(upstream: Upstream): Promise<boolean> {
    const signal = AbortSignal.any([this.#ending.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const read = async (path: string): Promise<string | null> => {
      const call = { method: "GET", path, query: "", headers: [OWN_NAME], body: null, isBackground: true } as const;
      const { status, body } = await upstream.send(call, signal);
      const whole = await wholeOf(body, upstream.name, MOST_BYTES);
      return status === 200 ? whole : null;
    };
    try {
      const models = await read("models");
      this.#name = models === null ? null : familyOfModels(parsedJson(models));
      this.#name ??= familyOfMetrics((await read("/metrics")) ?? "");
      return true;
    } catch {
      // It cannot be reached, or answers too much.
      return false;
    }
  }
}
