import type { GivenTime } from "../text/given-time.js";
import type { Label, MemoryId } from "../text/ids.js";

/** In place of a label: a memory no longer holds. Labels of blocks begin at 1. */
export const WITHDRAWN = 0 as Label;

/** One memory at one version of its text. Memories with the same text share a block, so that a prompt has no text twice. */
export interface StoredBlock {
  readonly label: Label;
  readonly text: string;
  /** Tokens of its rendered line, line break included. */
  readonly tokens: number;
  /** {@link WITHDRAWN}: by none. Null while some memory has this text. */
  supersededBy: Label | null;
}

export interface MemoryVersion {
  readonly memoryId: MemoryId;
  /** {@link WITHDRAWN}: the memory no longer holds; this row has no text. */
  readonly label: Label;
  readonly current: boolean;
  readonly found?: true;
  /** Whether it belongs to a run of Mem0's: only requests for that run may have it. */
  readonly ofRun?: true;
  /** What wrote the memory, such as a tool or a web page; in lower case. */
  readonly origin?: string | undefined;
  /** When the memory ceases to hold, in milliseconds since the epoch. */
  readonly until?: number | undefined;
  /** Whether the block's text has the memory's date before its words. */
  readonly dated?: true;
}

const DATE_LENGTH = "YYYY-MM-DD: ".length;

export function ownWords(text: string, isDated: boolean): string {
  return isDated ? text.slice(DATE_LENGTH) : text;
}

export interface StoredRegister {
  readonly blocks: readonly StoredBlock[];
  readonly versions: readonly MemoryVersion[];
  readonly forgotten: readonly MemoryId[];
}

/** What changed since the last drain, for one transaction. */
export interface RegisterChanges {
  readonly blocks: readonly StoredBlock[];
  readonly versions: readonly MemoryVersion[];
  readonly removedBlocks: readonly Label[];
  readonly forgotten: readonly MemoryId[];
}

/** When a memory ceases to hold (milliseconds since the epoch), and what replaces it. */
export interface MemoryEnd {
  readonly until: number;
  readonly replacedBy?: MemoryId | undefined;
}

/** Before every other time. */
export const ENDED = 0;

/** A memory as a search returned it. Lists of these are in relevance order. */
export interface RetrievedMemory {
  readonly id: MemoryId;
  readonly text: string;
  /** Absent: unknown. */
  readonly createdAt?: GivenTime;
  /** When its text changed. Absent: unknown, or never. */
  readonly updatedAt?: GivenTime;
  readonly ofRun?: true;
  /** Absent: as known before, if at all. */
  readonly origin?: string;
  readonly end?: MemoryEnd | undefined;
}

/** Its `text` is not yet canonical where the memory's own words are all of it. */
export interface RenderedMemory extends Omit<RetrievedMemory, "createdAt" | "updatedAt"> {
  readonly dated?: true;
  /** When its text was written. Absent: unknown. */
  readonly writtenAt?: GivenTime;
  /** Whether a search found it; absent if a request brought it, or it was recalled. */
  readonly found?: true;
}

export interface EndedMemory {
  readonly id: MemoryId;
  readonly replacedBy?: MemoryId | undefined;
}

export interface RequestedMemory {
  readonly memoryId: MemoryId;
  readonly label: Label;
  /** In the retrieval order, from 0. */
  readonly rank: number;
  readonly writtenAt?: GivenTime;
}

export interface Resolution {
  /** Distinct, in relevance order. */
  readonly blocks: readonly StoredBlock[];
  /** Distinct, in relevance order; several may share a block. */
  readonly memories: readonly RequestedMemory[];
  /** Listed several times with the same text. */
  readonly repeated: readonly MemoryId[];
  /** With the same text as another memory of the request. */
  readonly sharing: readonly MemoryId[];
  /** Contained in another memory's block, under whose label they are. */
  readonly contained: readonly MemoryId[];
  /** In no block, because the prompt's messages contain them. */
  readonly said: readonly MemoryId[];
  /** In no block, because the client changed these exchanges of this conversation. */
  readonly replaced: readonly MemoryId[];
  /** Blocks of the request's memories that the prompt does not carry either. */
  readonly leftOut: readonly Label[];
  /** Listed with two different texts. Both are in the prompt; the better ranked one is current. */
  readonly conflicting: readonly MemoryId[];
  /** Left out because they were forgotten. */
  readonly forgotten: readonly MemoryId[];
}
