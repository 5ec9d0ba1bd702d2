import type { Plan, Warning } from "../../core/index.js";
import type { UpstreamFailure } from "../../engines/upstream/upstream.js";
import type { MemorySourceFailure } from "../../memory/memory-source.js";
import type { Feedback } from "./answers.js";

/** One search of the memory source, by how it ended. */
export interface MemorySearch {
  readonly outcome: "ok" | MemorySourceFailure["kind"];
  /** Milliseconds. */
  readonly ms: number;
}

/** One call of the engine, by how its answer began: a status below 400 is `ok`. */
export interface EngineCall {
  readonly outcome: "ok" | "client_error" | "server_error" | UpstreamFailure["kind"];
  /** Milliseconds to the answer's first byte, or to where the call failed. */
  readonly ms: number;
}

/** What of an answer is counted. */
export interface ObservedCompose {
  readonly plan: Plan;
  readonly warnings: readonly Warning[];
}

/** Is told what a service did, whoever asked for it. */
export interface MemstemObserver {
  /** A prompt was composed and stored; a repeated answer is not told again. */
  composed(answer: ObservedCompose): void;
  /** An engine's report was taken in. `ttftMs`: the time to the first token, where this report is the first of its request to say it. */
  reported(feedback: Feedback, ttftMs: number | null): void;
  /** Memories were searched for. */
  searched(search: MemorySearch): void;
}
