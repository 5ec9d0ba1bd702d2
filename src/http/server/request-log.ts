import type { ComposedEntry } from "../requests/environment.js";

/** What the log gets of a request. Never memory text, never a query. */
export interface RequestLog extends ComposedEntry {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  /** Milliseconds from when it came to its answer's head. */
  readonly ms: number;
}
