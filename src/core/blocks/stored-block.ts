import type { Label, MemoryId } from "../text/ids.js";
import type { ContextBlock } from "./context-block.js";

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
