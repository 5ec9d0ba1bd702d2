import { setTimeout } from "node:timers/promises";
import { forAnotherRequest, type Upstream, withAdded } from "../../engines/upstream/upstream.js";
import type { ColdHead } from "../compose/prompt-planner.js";
import type { ClientRequest } from "./chat-request.js";
import { modelName, RefusedModels } from "./engine-limits.js";

/** Longest wait for a cancelled call, in milliseconds. */
const OVER_MS = 1_000;

/**
 * Warms the engine's cache: has it compute a prompt's prefix while memories are searched for (docs/internals/algorithms.md, "Warm-up"). The prefix is sent as a
 * request for one token, which is cancelled when the search ends; what was computed by then stays cached. Failures are ignored.
 */
export class WarmUp {
  /** Models whose engine refused a warm-up: it would refuse the next one too. By path: what one API refuses another may take. */
  readonly #refused: RefusedModels;

  /** @param clock milliseconds, monotonic */
  constructor(
    private readonly upstream: Pick<Upstream, "send">,
    clock: () => number,
  ) {
    this.#refused = new RefusedModels(clock);
  }

  /**
   * Sends the prefix. The function returned cancels that and resolves when it has ended, after {@link OVER_MS} at most: an engine that still
   * computes it when the prompt arrives would compute the prompt elsewhere, from its first token.
   *
   * @param tenant the request's tenant: the same object for all of one tenant's requests
   */
  start(tenant: object, request: ClientRequest, head: ColdHead): () => Promise<void> {
    const cancel = new AbortController();
    let sending = Promise.resolve();
    const { api, body: own, query, headers, added } = request;
    const { path } = api;
    const model = `${path} ${modelName(own["model"])}`;
    // What the engine has of a history that it is to continue stays as it is.
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
