import type { MemoryId } from "../text/ids.js";

/** One memory as a search returned it. A list of these is in relevance order, best first. */
export interface RetrievedMemory {
  readonly id: MemoryId;
  /** The memory's text as the source gave it, not yet made canonical. */
  readonly text: string;
}
