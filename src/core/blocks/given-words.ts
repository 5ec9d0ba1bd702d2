import type { Label } from "../text/ids.js";
import type { BlockRegister } from "./block-register.js";
import type { StoredBlock } from "./context-block.js";
import type { Resolution } from "./resolution.js";

/** What a prompt contains already. */
interface GivenBlocks {
  readonly given: ReadonlySet<Label>;
  /** Superseded blocks, by the label that the prompt says replaces them. */
  readonly replaced: ReadonlyMap<Label, Label>;
}

/**
 * A request's memories for a prompt that contains blocks already. A memory whose words stand there as another block template rendered
 * them is that block: its words are not given again.
 */
export function asGiven(register: BlockRegister, resolution: Resolution, { given, replaced }: GivenBlocks): Resolution {
  if (given.size === 0) return resolution;
  const memories = resolution.memories.map((memory) => {
    const { label, memoryId } = memory;
    if (given.has(label)) return memory;
    // Superseded for another memory that shares it: the prompt will say that it is replaced.
    const isOutdated = (other: Label) => replaced.has(other) || register.successor(other) !== null;
    const standing = register.sameWordsAs(memoryId, label).find((other) => given.has(other) && !isOutdated(other));
    return standing === undefined ? memory : { ...memory, label: standing };
  });
  if (memories.every((memory, at) => memory === resolution.memories[at])) return resolution;
  const labels = new Set(memories.map(({ label }) => label));
  return { ...resolution, memories, blocks: [...labels].map((label) => register.get(label) as StoredBlock) };
}
