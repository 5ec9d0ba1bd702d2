import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Feedback } from "../../service/base/call-types.js";
import { StoreUnavailableError } from "../../service/base/errors.js";
import {
  type EngineCall,
  type MemorySearch,
  type MemprefixObserver,
  type ObservedCompose,
  PARTS,
} from "../../service/base/memprefix-observer.js";
import type { NotComposedReason } from "../../service/chat/compose-with-timeout.js";
import type { MemprefixOfAll } from "../../service/library/memprefix.js";
import type { RejectionReason } from "../problems/problem.js";
import type { RequestLog } from "../requests/request.js";

/** Seconds; composes take milliseconds, batches and proxied answers seconds. */
const DURATIONS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/**
 * The service's metrics in Prometheus' text format. Numbers, routes and codes only: no ids, text or user names. The accuracy of the prediction
 * is `observed / expected` of `memprefix_reported_cached_tokens_total`.
 */
export class Metrics implements MemprefixObserver {
  readonly #registry = new Registry();
  readonly #requests = this.#counter("memprefix_http_requests_total", "Requests by route and status.", [
    "method",
    "route",
    "status",
  ]);
  readonly #durations = this.#histogram(
    "memprefix_http_request_duration_seconds",
    "From a request's arrival to its answer's head.",
    ["route"],
  );
  readonly #composes = this.#counter("memprefix_composes_total", "Composed prompts, repeated answers not counted.", [
    "layout",
    "policy",
  ]);
  readonly #prompts = this.#counter(
    "memprefix_prompt_tokens_total",
    "Tokens of composed prompts, by whether a cache hit was expected.",
    ["expected"],
  );
  readonly #missed = this.#counter(
    "memprefix_missed_tokens_total",
    "Tokens of composed prompts beyond the new turns' own text that no cache hit was expected of, by the miss's cause.",
    ["cause"],
  );
  readonly #epochs = this.#counter("memprefix_epochs_total", "Epochs begun by prompts of windows, by reason.", [
    "reason",
  ]);
  readonly #writes = this.#counter(
    "memprefix_write_calls_total",
    "Calls that Mem0 made of its own model through /plain/v1.",
    [],
  );
  readonly #written = this.#counter(
    "memprefix_write_tokens_total",
    "Prompt tokens of those calls, by whether the engine had them cached.",
    ["cached"],
  );
  readonly #warnings = this.#counter("memprefix_warnings_total", "Warnings of composed prompts, by code.", ["code"]);
  readonly #reported = this.#counter(
    "memprefix_reported_cached_tokens_total",
    "Cached tokens of the requests that an engine reported on, expected and observed.",
    ["of"],
  );
  readonly #gap = this.#counter(
    "memprefix_reported_gap_tokens_total",
    "Sum of the absolute differences between expected and observed cached tokens.",
    [],
  );

  readonly #firstTokens = this.#histogram(
    "memprefix_first_token_seconds",
    "Time to first token, as measured behind /v1 or reported by the caller.",
    [],
  );
  readonly #searches = this.#histogram(
    "memprefix_search_duration_seconds",
    "Searches of the memory source, by outcome.",
    ["outcome"],
  );
  readonly #engineCalls = this.#histogram(
    "memprefix_engine_answer_seconds",
    "Calls of the engine behind /v1 to the first byte of its answer, by outcome.",
    ["outcome"],
  );

  readonly #rejected = this.#counter(
    "memprefix_refused_requests_total",
    "Requests rejected before any work was done for them, by reason.",
    ["reason"],
  );

  readonly #notComposed = this.#counter(
    "memprefix_not_composed_chats_total",
    "Chats that went to the engine unmodified, by reason.",
    ["reason"],
  );

  constructor(memprefix: MemprefixOfAll, inFlight: () => number) {
    collectDefaultMetrics({ register: this.#registry });
    const number = (name: string, help: string, read: () => number) =>
      this.#gauge(name, help, [], (gauge) => gauge.set(read()));
    number("memprefix_requests_in_flight", "Requests whose body has arrived and whose answer is not sent.", inFlight);
    number("memprefix_working_scopes", "Scopes in memory.", () => memprefix.load.scopes);
    number("memprefix_working_bytes", "Bytes of the scopes in memory, estimated.", () => memprefix.load.bytes);
    number("memprefix_working_index_nodes", "Context-index nodes of the scopes in memory.", () => memprefix.load.nodes);
    number("memprefix_busy_users", "Users with a running job.", () => memprefix.load.busyUsers);
    number("memprefix_jobs", "Jobs of users, running or queued.", () => memprefix.load.jobs);
    this.#gauge(
      "memprefix_engine_cache",
      "The engine's prefix cache, as prompts of the tenant default are planned: its capacity and block, absent until known, conversations whose newest prompt it is taken to hold, and tokens computed for clients that do not come through memprefix.",
      ["part"],
      (gauge) => {
        const state = memprefix.cacheState;
        if (state === null) return;
        if (state.capacityTokens !== null) gauge.set({ part: "capacity_tokens" }, state.capacityTokens);
        if (state.blockTokens !== null) gauge.set({ part: "block_tokens" }, state.blockTokens);
        gauge.set({ part: "conversations" }, state.streams);
        gauge.set({ part: "foreign_tokens" }, state.foreignTokens);
      },
    );
    this.#gauge("memprefix_degraded", "1 for a part that failed when it was last asked, else 0.", ["part"], (gauge) => {
      const failing = new Set(memprefix.degraded.list.map(({ part }) => part));
      for (const part of PARTS) gauge.set({ part }, failing.has(part) ? 1 : 0);
    });
    this.#gauge(
      "memprefix_engine_law",
      "The time law fitted to measured times to first token, in milliseconds; absent while the configured one is used.",
      ["part"],
      async (gauge) => {
        // The other figures show that the store fails.
        const law = await memprefix.timeLaw().catch((error: unknown) => {
          if (error instanceof StoreUnavailableError) return null;
          throw error;
        });
        if (law === null) return;
        gauge.set({ part: "fixed" }, law.fixedMs);
        gauge.set({ part: "per_token" }, law.perTokenMs);
        gauge.set({ part: "per_pair" }, law.perPairMs);
        gauge.set({ part: "per_held_token" }, memprefix.perHeldTokenMs);
      },
    );
  }

  served({ method, route, status, ms }: RequestLog): void {
    this.#requests.inc({ method, route, status });
    this.#durations.observe({ route }, ms / 1_000);
  }

  rejected(reason: RejectionReason): void {
    this.#rejected.inc({ reason });
  }

  notComposed(reason: NotComposedReason): void {
    this.#notComposed.inc({ reason });
  }

  composed({ plan, warnings }: Pick<ObservedCompose, "plan" | "warnings">): void {
    this.#composes.inc({ layout: plan.layout, policy: plan.policy });
    this.#prompts.inc({ expected: "cached" }, plan.expectedCachedTokens);
    this.#prompts.inc({ expected: "uncached" }, plan.uncachedTokens);
    if (plan.miss !== null) this.#missed.inc({ cause: plan.miss.cause }, plan.miss.tokens);
    for (const { code } of warnings) this.#warnings.inc({ code });
    if (plan.epoch != null && plan.epoch.began !== null) this.#epochs.inc({ reason: plan.epoch.began });
  }

  reported({ expectedCachedTokens, observedCachedTokens }: Feedback, firstTokenMs: number | null): void {
    if (firstTokenMs !== null) this.#firstTokens.observe(firstTokenMs / 1_000);
    if (observedCachedTokens === null) return;
    this.#reported.inc({ of: "expected" }, expectedCachedTokens);
    this.#reported.inc({ of: "observed" }, observedCachedTokens);
    this.#gap.inc(Math.abs(observedCachedTokens - expectedCachedTokens));
  }

  wrote({ promptTokens, cachedTokens }: Parameters<Required<MemprefixObserver>["wrote"]>[0]): void {
    this.#writes.inc();
    if (cachedTokens === null) this.#written.inc({ cached: "unknown" }, promptTokens);
    else {
      this.#written.inc({ cached: "yes" }, cachedTokens);
      this.#written.inc({ cached: "no" }, Math.max(0, promptTokens - cachedTokens));
    }
  }

  searched({ outcome, ms }: MemorySearch): void {
    this.#searches.observe({ outcome }, ms / 1_000);
  }

  engineCalled({ outcome, ms }: EngineCall): void {
    this.#engineCalls.observe({ outcome }, ms / 1_000);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  /** @param collect sets the values of a reading */
  #gauge<T extends string>(
    name: string,
    help: string,
    labelNames: readonly T[],
    collect: (gauge: Gauge<T>) => void | Promise<void>,
  ): void {
    const registers = [this.#registry];
    new Gauge({
      ...{ name, help, labelNames, registers },
      collect(this: Gauge<T>) {
        this.reset();
        return collect(this);
      },
    });
  }

  #histogram<T extends string>(name: string, help: string, labelNames: readonly T[]): Histogram<T> {
    return new Histogram({ name, help, labelNames, buckets: DURATIONS, registers: [this.#registry] });
  }

  #counter<T extends string>(name: string, help: string, labelNames: readonly T[]): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }
}
