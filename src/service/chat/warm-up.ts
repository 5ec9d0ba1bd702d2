import { setTimeout } from "node:timers/promises";
import type { Upstream } from "../../engines/upstream/upstream.js";
import { forAnotherRequest, type HeaderPair, withAdded } from "../../engines/upstream/upstream-headers.js";
import type { ColdHead } from "../compose/prompt-planner.js";
import { RefusedModels } from "../learning/refused-models.js";

/** Longest wait, in milliseconds, for what was given up. The engine inside stops between two batches of tokens, others at once. */
const OVER_MS = 1_000;

/** A client's request, as far as its prompt's beginning depends on it. */
export interface WarmedRequest {
  readonly body: Readonly<Record<string, unknown>>;
  readonly query: string;
  readonly headers: readonly HeaderPair[];
}

/**
 * Has an engine compute the beginning of a prompt while memories are searched for (docs/internals/algorithms.md, "Warm-up"): the beginning
 * goes there as a request for one token, and is given up when the search has ended. What was computed by then stays in the caches that
 * there are. Nothing that goes wrong here is anybody's concern.
 */
export class WarmUp {
  /** An engine that refuses such a request would refuse the next one, too. */
  readonly #refused: RefusedModels;

  /** @param clock milliseconds, monotonic */
  constructor(
    private readonly upstream: Pick<Upstream, "send">,
    clock: () => number,
  ) {
    this.#refused = new RefusedModels(clock);
  }

  /**
   * Sends the beginning. Returns what gives it up, and resolves when it is over, which takes no longer than {@link OVER_MS}: an engine that
   * is still at it when the prompt comes would compute it in another place, from its first token on.
   *
   * @param tenant whose request it is: the same object for all of one tenant's
   */
  start(tenant: object, { body: own, query, headers }: WarmedRequest, head: ColdHead): () => Promise<void> {
    const giveUp = new AbortController();
    let sending = Promise.resolve();
    if (!this.#refused.has(tenant, own)) {
      const { stream: _stream, stream_options: _options, n: _n, max_tokens: _most, ...same } = own;
      const most = "max_completion_tokens" in own ? "max_completion_tokens" : "max_tokens";
      const body = JSON.stringify({ ...head.fields, ...same, messages: head.messages, [most]: 1 });
      const sent = withAdded(forAnotherRequest(headers), head.headers);
      const request = { method: "POST", path: "chat/completions", query, headers: sent, body } as const;
      sending = this.#send(request, giveUp.signal, () => this.#refused.add(tenant, own));
    }
    return async () => {
      giveUp.abort();
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
      // The prompt itself will show whether the engine is there.
    }
  }
}
