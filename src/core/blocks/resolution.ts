import type { Label, MemoryId } from "../text/ids.js";
import type { StoredBlock } from "./context-block.js";

/** One distinct memory of a request and the block that holds its text. */
export interface RequestedMemory {
  readonly memoryId: MemoryId;
  readonly label: Label;
  /** Rank in the retrieval order, from 0. */
  readonly rank: number;
}

/** A request's memories as blocks. */
export interface Resolution {
  /** Distinct blocks, in relevance order. */
  readonly blocks: readonly StoredBlock[];
  /** Every distinct memory of the request, in relevance order; several may share a block. */
  readonly memories: readonly RequestedMemory[];
  /** Memories listed several times with the same text. */
  readonly repeated: readonly MemoryId[];
  /** Memories with the same text as another memory of the request. */
  readonly sharing: readonly MemoryId[];
  /** Memories whose sentences another memory's block has, under whose label they are. */
  readonly contained: readonly MemoryId[];
  /** Memories that the prompt's messages say; in no block. */
  readonly said: readonly MemoryId[];
  /** Exchanges of this conversation that its client has changed since; in no block. */
  readonly replaced: readonly MemoryId[];
  /** Memories listed with two different texts; the better ranked one counts as current, both are in the prompt. */
  readonly conflicting: readonly MemoryId[];
  /** Memories left out because they were forgotten on the caller's request. */
  readonly forgotten: readonly MemoryId[];
}
