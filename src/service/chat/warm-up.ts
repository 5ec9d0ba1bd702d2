import { setTimeout } from "node:timers/promises";
import { forAnotherRequest, type Upstream, withAdded } from "../../engines/upstream/upstream.js";
import type { ColdHead } from "../compose/prompt-planner.js";
import { type ClientRequest, withTools } from "./chat-request.js";
import { modelName, RefusedModels } from "./engine-limits.js";

/** Longest wait for a cancelled call, in milliseconds. */
const OVER_MS = 1_000;

/** Has the engine compute a prompt's prefix until the search ends (docs/internals/algorithms.md, "Warm-up"). Failures are ignored. */
export class WarmUp {
  /** Models, by path, whose engine refused a warm-up and would refuse the next one. */
  readonly #refused: RefusedModels;

  constructor(
    private readonly upstream: Pick<Upstream, "send">,
    clock: () => number,
  ) {
    this.#refused = new RefusedModels(clock);
  }

  /** @returns cancels; resolves when it has ended, or after {@link OVER_MS}, since an engine still at it would compute the prompt from its start */
  start(tenant: object, client: ClientRequest, head: ColdHead): () => Promise<void> {
    const request = withTools(client, head.toolTexts);
    const cancel = new AbortController();
    let sending = Promise.resolve();
    const { api, body: own, query, headers, added } = request;
    const { path } = api;
    const model = `${path} ${modelName(own["model"])}`;
    // A history that the engine continues itself stays as it is.
    const isUseless = added !== undefined || this.#refused.has(tenant, model);
    const warming = isUseless ? null : api.warmUp(own, head.messages);
    if (warming !== null) {
      const body = request.written({ ...head.fields, ...warming });
      const sent = withAdded(forAnotherRequest(headers), head.headers);
      const call = { method: "POST", path, query, headers: sent, body } as const;
      sending = this.#send(call, cancel.signal, () => this.#refused.add(tenant, model));
    }
    return async () => {
      cancel.abort();
      const waiting = new AbortController();
      const patience = setTimeout(OVER_MS, undefined, { signal: waiting.signal }).catch(() => {});
      await Promise.race([sending, patience]);
      waiting.abort();
    };
  }

  async #send(request: Parameters<Upstream["send"]>[0], signal: AbortSignal, onRefused: () => void): Promise<void> {
    try {
      const { status, body } = await this.upstream.send(request, signal);
      if (status === 400 || status === 422) onRefused();
      for await (const _ of body);
    } catch {
      // The prompt itself will show whether the engine is reachable.
    }
  }
}
