import type { GivenTime } from "../text/given-time.js";
import type { Digest, Label, MemoryId } from "../text/ids.js";

/**
 * One unit of external context: one memory at one version of its text (docs/internals/algorithms.md, "The field's words"). Memories with
 * the same text share a block, so a prompt never contains a text twice.
 */
export interface ContextBlock {
  readonly label: Label;
  /** Canonical text, see {@link canonicalText}. */
  readonly text: string;
  readonly textDigest: Digest;
  /** Tokens of the block's rendered line, line break included. */
  readonly tokens: number;
}

/**
 * Stands where a label would, for the current text of a memory that no longer holds: it has none. Labels of blocks begin at 1.
 */
export const WITHDRAWN = 0 as Label;

/** A block as stored. */
export interface StoredBlock extends ContextBlock {
  /** The block that superseded this one, or {@link WITHDRAWN}; null while some memory has this text. */
  supersededBy: Label | null;
}

/** One version of a memory: the block with its text at some time. */
export interface MemoryVersion {
  readonly memoryId: MemoryId;
  /** {@link WITHDRAWN}: the memory no longer holds, and this is not a text of it. */
  readonly label: Label;
  /** Whether this is the memory's current text. */
  readonly current: boolean;
  /** On the current version: whether a search found the memory, which its source can be asked about then. Absent: no. */
  readonly found?: true;
  /** On the current version: whether it belongs to a run, and is given where that is asked for alone. Absent: no. */
  readonly ofRun?: true;
  /** On the current version: when the memory ceases to hold, in milliseconds since the epoch. Absent: it is not known to. */
  readonly until?: number | undefined;
  /** Whether the block's text has the memory's date before its words. Absent: no. */
  readonly dated?: true;
}

const DATE_LENGTH = "YYYY-MM-DD: ".length;

/** A memory's own words in its block's text. */
export function ownWords(text: string, isDated: boolean): string {
  return isDated ? text.slice(DATE_LENGTH) : text;
}

/** The blocks and memories of a scope, as stored. */
export interface StoredRegister {
  readonly blocks: readonly StoredBlock[];
  readonly versions: readonly MemoryVersion[];
  readonly forgotten: readonly MemoryId[];
}

/** What changed since the last drain, to be stored in one transaction. */
export interface RegisterChanges {
  readonly blocks: readonly StoredBlock[];
  readonly versions: readonly MemoryVersion[];
  readonly removedBlocks: readonly Label[];
  readonly forgotten: readonly MemoryId[];
}

/** When a memory ceases to hold, as its source says. */
export interface MemoryEnd {
  /** Milliseconds since the epoch; {@link ENDED}: it has ceased. */
  readonly until: number;
  /** The memory that took its place; absent: none is named. */
  readonly replacedBy?: MemoryId | undefined;
}

/** Before every other time. */
export const ENDED = 0;

/** One memory as a search returned it; lists of these are in relevance order, best first. */
export interface RetrievedMemory {
  readonly id: MemoryId;
  /** The source's text, not yet canonical. */
  readonly text: string;
  /** When it was created. Absent: unknown. */
  readonly createdAt?: GivenTime;
  /** Whether it belongs to a run of Mem0's. Absent: no. */
  readonly ofRun?: true;
  /** Absent: it holds. */
  readonly end?: MemoryEnd | undefined;
}

/** One memory as its block gives it. */
export interface RenderedMemory {
  readonly id: MemoryId;
  /** The block's text, not yet canonical where the memory's own words are all of it. */
  readonly text: string;
  /** Whether the text has the memory's date before its words. Absent: no. */
  readonly dated?: true;
  /** As {@link RetrievedMemory} has it. */
  readonly ofRun?: true;
  /** Absent: it holds. */
  readonly end?: MemoryEnd | undefined;
  /** Whether a search found it. Absent: a request brought it, or it is recalled. */
  readonly found?: true;
}

/** A memory that no longer holds, and the one that took its place. */
export interface EndedMemory {
  readonly id: MemoryId;
  readonly replacedBy?: MemoryId | undefined;
}

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
  /** Blocks of the request's memories that are in none of its own: the prompt does not carry them either. */
  readonly leftOut: readonly Label[];
  /** Memories listed with two different texts; the better ranked one counts as current, both are in the prompt. */
  readonly conflicting: readonly MemoryId[];
  /** Memories left out because they were forgotten on the caller's request. */
  readonly forgotten: readonly MemoryId[];
}
