import type { ConversationId, Plan, RequestId, ReuseFacts, Scope, Warning } from "../../core/index.js";
import type { EngineName } from "../../engines/adapters/engine-adapter.js";
import type { UpstreamFailure } from "../../engines/upstream/upstream.js";
import type { MemorySourceFailure } from "../../memory/memory-source.js";
import type { EngineReport } from "../../store/api/store.js";
import type { Feedback } from "./answers.js";
import type { PartFailure, PartName } from "./degraded-parts.js";

/** One search of the memory source. */
export interface MemorySearch {
  readonly outcome: "ok" | MemorySourceFailure["kind"];
  /** Milliseconds. */
  readonly ms: number;
}

/** One call of the engine; a status below 400 is `ok`. */
export interface EngineCall {
  readonly outcome: "ok" | "client_error" | "server_error" | UpstreamFailure["kind"];
  /** Milliseconds to the answer's first byte, or to the failure. */
  readonly ms: number;
  /** Why it failed, where the engine did. */
  readonly failure?: { readonly reason: string; readonly cause: string };
}

/** What the planner knows of the prompt that a prompt should have continued. */
export interface PlannedReuse extends Omit<ReuseFacts, "before"> {
  /** Tokens that it could have had in common with it, at most; null: there is none. */
  readonly reusableTokens: number | null;
  /** Of memories that were not retrieved. */
  readonly carriedTokens: number;
}

/** A composed prompt, as far as it is counted. Without text. */
export interface ObservedCompose {
  readonly scope: Scope;
  readonly requestId: RequestId;
  readonly conversationId: ConversationId | null;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly engine: EngineName;
  /** As its client names it; null: not known. */
  readonly model: string | null;
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
  readonly reuse: PlannedReuse;
}

/** What an engine reported of a prompt. */
export interface ObservedReport {
  readonly scope: Scope;
  readonly feedback: Feedback;
  readonly report: EngineReport;
  /** Whether it is the request's first report of a time to the first token. */
  readonly isFirstTime: boolean;
  /** As its client names it; null: not known. */
  readonly model: string | null;
}

/** Observes what a service does, for all tenants. */
export interface MemstemObserver {
  /** A prompt was composed and stored; not called for repeated answers. */
  composed?(answer: ObservedCompose): void;
  /** An engine's report was applied. */
  reported?(report: ObservedReport): void;
  /** An engine named requests as evicted. */
  evicted?(scope: Scope, ids: readonly RequestId[]): void;
  /** A prompt counts as never composed. */
  withdrawn?(scope: Scope, id: RequestId): void;
  /** Memories were searched for. */
  searched?(search: MemorySearch): void;
  /** A part that memstem needs failed, for another cause than before. */
  failed?(failure: PartFailure): void;
  /** A part that failed works again. */
  recovered?(part: PartName): void;
}

/** Several observers as one. */
export class Observers implements Required<MemstemObserver> {
  readonly #all = new Set<MemstemObserver>();

  /** The function returned removes it. */
  add(observer: MemstemObserver): () => void {
    this.#all.add(observer);
    return () => this.#all.delete(observer);
  }

  composed(answer: ObservedCompose): void {
    for (const observer of this.#all) observer.composed?.(answer);
  }

  reported(report: ObservedReport): void {
    for (const observer of this.#all) observer.reported?.(report);
  }

  evicted(scope: Scope, ids: readonly RequestId[]): void {
    for (const observer of this.#all) observer.evicted?.(scope, ids);
  }

  withdrawn(scope: Scope, id: RequestId): void {
    for (const observer of this.#all) observer.withdrawn?.(scope, id);
  }

  searched(search: MemorySearch): void {
    for (const observer of this.#all) observer.searched?.(search);
  }

  failed(failure: PartFailure): void {
    for (const observer of this.#all) observer.failed?.(failure);
  }

  recovered(part: PartName): void {
    for (const observer of this.#all) observer.recovered?.(part);
  }
}
