import { setTimeout } from "node:timers/promises";
import type { Upstream } from "../../engines/upstream/upstream.js";
import { forAnotherRequest, type HeaderPair, withAdded } from "../../engines/upstream/upstream-headers.js";
import type { ColdHead } from "../compose/prompt-planner.js";
import { RefusedModels } from "../learning/refused-models.js";

/** Longest wait for a cancelled call, in milliseconds. The embedded engine stops between two batches of tokens, others at once. */
const OVER_MS = 1_000;

/** A client's request, as far as its prompt's prefix depends on it. */
export interface WarmedRequest {
  readonly body: Readonly<Record<string, unknown>>;
  readonly query: string;
  readonly headers: readonly HeaderPair[];
}

/**
 * Warms the engine's cache: has it compute a prompt's prefix while memories are searched for (docs/internals/algorithms.md, "Warm-up"). The prefix is sent as a
 * request for one token, which is cancelled when the search ends; what was computed by then stays cached. Failures are ignored.
 */
export class WarmUp {
  /** Models whose engine refused a warm-up: it would refuse the next one too. */
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
  start(tenant: object, { body: own, query, headers }: WarmedRequest, head: ColdHead): () => Promise<void> {
    const cancel = new AbortController();
    let sending = Promise.resolve();
    if (!this.#refused.has(tenant, own)) {
      const { stream: _stream, stream_options: _options, n: _n, max_tokens: _most, ...same } = own;
      const most = "max_completion_tokens" in own ? "max_completion_tokens" : "max_tokens";
      const body = JSON.stringify({ ...head.fields, ...same, messages: head.messages, [most]: 1 });
      const sent = withAdded(forAnotherRequest(headers), head.headers);
      const request = { method: "POST", path: "chat/completions", query, headers: sent, body } as const;
      sending = this.#send(request, cancel.signal, () => this.#refused.add(tenant, own));
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
