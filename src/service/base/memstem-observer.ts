import type { Plan, Warning } from "../../core/index.js";
import type { UpstreamFailure } from "../../engines/upstream/upstream.js";
import type { MemorySourceFailure } from "../../memory/memory-source.js";
import type { Feedback } from "./answers.js";

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
}

/** A composed prompt, as far as it is counted. */
export interface ObservedCompose {
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
}

/** Observes what a service does, for all tenants. */
export interface MemstemObserver {
  /** A prompt was composed and stored; not called for repeated answers. */
  composed(answer: ObservedCompose): void;
  /** An engine's report was applied. `ttftMs`: time to first token; null unless this is the request's first report of it. */
  reported(feedback: Feedback, ttftMs: number | null): void;
  /** A request was gathered with others, and waited so many milliseconds for it. */
  scheduled(waitedMs: number): void;
  /** Memories were searched for. */
  searched(search: MemorySearch): void;
}
