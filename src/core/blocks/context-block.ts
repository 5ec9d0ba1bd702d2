import type { Digest, Label, MemoryId } from "../text/ids.js";
import { wellFormed } from "../text/storable-text.js";

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

// biome-ignore lint/suspicious/noControlCharactersInRegex: vertical tab and form feed are line breaks to some readers of a prompt
const LINE_BREAKS = /\r\n|[\r\u000b\u000c\u0085\u2028\u2029]/g;

/**
 * The canonical form of a memory's text, which is compared, stored and rendered: every kind of line break becomes `\n`, unpaired surrogates
 * become U+FFFD, and white space at the ends is removed. Nothing else changes.
 */
export function canonicalText(text: string): string {
  return wellFormed(text.replace(LINE_BREAKS, "\n")).trim();
}

/** A block as stored. */
export interface StoredBlock extends ContextBlock {
  /** The block that superseded this one; null while some memory has this text. */
  supersededBy: Label | null;
}

/** One version of a memory: the block with its text at some time. */
export interface MemoryVersion {
  readonly memoryId: MemoryId;
  readonly label: Label;
  /** Whether this is the memory's current text. */
  readonly current: boolean;
}

/** What changed since the last drain, to be stored in one transaction. */
export interface RegisterChanges {
  readonly blocks: readonly StoredBlock[];
  readonly versions: readonly MemoryVersion[];
  readonly removedBlocks: readonly Label[];
  readonly forgotten: readonly MemoryId[];
}

/** One memory as a search returned it; lists of these are in relevance order, best first. */
export interface RetrievedMemory {
  readonly id: MemoryId;
  /** The source's text, not yet canonical. */
  readonly text: string;
}
