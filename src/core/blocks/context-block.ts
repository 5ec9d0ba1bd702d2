import type { Digest, Label, MemoryId } from "../text/ids.js";
import { wellFormed } from "../text/storable-text.js";

/**
 * One unit of external context: one memory at one version of its text (docs/internals/algorithms.md, "The field's words"). Two memories
 * with the same text share a block, so a prompt never holds the same text twice.
 */
export interface ContextBlock {
  readonly label: Label;
  /** Canonical text, see {@link canonicalText}. */
  readonly text: string;
  readonly textDigest: Digest;
  /** Tokens of the block's rendered line, line break included. */
  readonly tokens: number;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: vertical tab and form feed are line breaks to some readers of a prompt
const LINE_BREAKS = /\r\n|[\r\u000b\u000c\u0085\u2028\u2029]/g;

/**
 * The one form of a memory's text that is compared, stored and rendered: every kind of line break becomes `\n`, what is no Unicode
 * becomes U+FFFD, and white space at the ends goes. Nothing else is changed.
 */
export function canonicalText(text: string): string {
  return wellFormed(text.replace(LINE_BREAKS, "\n")).trim();
}

/** A block as it is stored. */
export interface StoredBlock extends ContextBlock {
  /** Set while no memory has this text: the block whose text the last of them has instead. */
  supersededBy: Label | null;
}

/** That a memory has, or had, the text of a block: the memory at one version of its text. */
export interface MemoryVersion {
  readonly memoryId: MemoryId;
  readonly label: Label;
  /** Whether this is the memory's text now. */
  readonly current: boolean;
}

/** What changed since the last drain, to be stored in one transaction. */
export interface RegisterChanges {
  readonly blocks: readonly StoredBlock[];
  readonly versions: readonly MemoryVersion[];
  readonly removedBlocks: readonly Label[];
  readonly forgotten: readonly MemoryId[];
}

/** One memory as a search returned it. A list of these is in relevance order, best first. */
export interface RetrievedMemory {
  readonly id: MemoryId;
  /** The memory's text as the source gave it, not yet made canonical. */
  readonly text: string;
}
