import { isExchange } from "../prompt/exchange-text.js";
import type { Label, MemoryId } from "../text/ids.js";
import { comparedText } from "../text/sentences.js";
import type { BlockRegister } from "./block-register.js";
import type { RequestedMemory, Resolution, StoredBlock } from "./context-block.js";

/** Which texts are given once. `exact`: equal ones. `contained`: also those whose sentences another text of the prompt has. */
export const DEDUPE_NAMES = ["exact", "contained"] as const;
export type DedupeName = (typeof DEDUPE_NAMES)[number];
export const DEFAULT_DEDUPE: DedupeName = "contained";

/** What a prompt says besides the requested blocks. */
export interface PromptTexts {
  /** Blocks that it has already and that are current. */
  readonly standing: readonly Label[];
  /** Blocks that are to be given in any case, because they supersede one that it has. */
  readonly due: Pick<ReadonlySet<Label>, "has">;
  /** The user's question; null: a tool's result. */
  readonly question: string | null;
  /** Exchanges of its messages, as they are written back. */
  readonly exchanges?: () => ReadonlySet<string>;
}

/**
 * Leaves out the blocks whose sentences, all of them in a row, another block of the prompt or its question has, and exchanges that stand in
 * its messages. Of equal texts the one that stands in the prompt stays, else the one with the lowest label; of others the one that says
 * more. A block that the prompt has already stays as it is. A memory whose block is left out is under the label that stands for it, or in
 * `said`. The same whatever the order of the memories.
 */
export function withoutContained(
  register: BlockRegister,
  resolution: Resolution,
  { standing, due, question, exchanges }: PromptTexts,
): Resolution {
  const given = new Set(standing);
  const fresh = resolution.blocks.filter(({ label }) => !given.has(label) && !due.has(label));
  if (fresh.length === 0) return resolution;
  const wanted = new Set(fresh.map(({ label }) => register.comparedOf(label).whole));
  const inPrompt = whoSays(wanted, standing, register);
  const requested = whoSays(
    wanted,
    resolution.blocks.map(({ label }) => label),
    register,
  );
  const asked = new Set(question === null ? [] : comparedText(question).runs);
  let history: ReadonlySet<string> | undefined;
  const isInHistory = (text: string) => {
    history ??= exchanges?.() ?? new Set();
    return history.has(text);
  };
  const insteadOf = new Map<Label, Label | null>();
  // What stands for a text may be left out itself: an exchange that the messages say.
  const final = (label: Label): Label | null => {
    const instead = insteadOf.get(label);
    return instead === undefined ? label : instead === null ? null : final(instead);
  };
  for (const { label } of fresh) {
    const { whole } = register.comparedOf(label);
    if (whole === "") continue;
    const isSaid = asked.has(whole) || (isExchange(register.textOf(label)) && isInHistory(register.textOf(label)));
    const instead = isSaid ? null : (inPrompt.get(whole) ?? requested.get(whole) ?? label);
    if (instead !== label) insteadOf.set(label, instead);
  }
  if (insteadOf.size === 0) return resolution;
  return replaced(register, resolution, new Map([...insteadOf.keys()].map((label) => [label, final(label)])));
}

function replaced(
  register: BlockRegister,
  resolution: Resolution,
  insteadOf: ReadonlyMap<Label, Label | null>,
): Resolution {
  const contained: MemoryId[] = [];
  const said: MemoryId[] = [];
  const memories = resolution.memories.flatMap((memory): RequestedMemory[] => {
    const instead = insteadOf.get(memory.label);
    if (instead === undefined) return [memory];
    if (instead === null) {
      said.push(memory.memoryId);
      return [];
    }
    contained.push(memory.memoryId);
    return [{ ...memory, label: instead }];
  });
  return { ...withMemories(register, resolution, memories), contained, said };
}

function withMemories(
  register: BlockRegister,
  resolution: Resolution,
  memories: readonly RequestedMemory[],
): Resolution {
  const labels = new Set(memories.map(({ label }) => label));
  return { ...resolution, memories, blocks: [...labels].map((label) => register.get(label) as StoredBlock) };
}

/** Of the blocks that say each wanted text, the one that says most; of several the one with the lowest label. */
function whoSays(
  wanted: ReadonlySet<string>,
  labels: readonly Label[],
  register: BlockRegister,
): ReadonlyMap<string, Label> {
  const found = new Map<string, Label>();
  for (const label of labels) {
    const { runs, sentences } = register.comparedOf(label);
    for (const run of runs) {
      if (!wanted.has(run)) continue;
      const best = found.get(run);
      const most = best === undefined ? -1 : register.comparedOf(best).sentences;
      if (best === undefined || sentences > most || (sentences === most && label < best)) found.set(run, label);
    }
  }
  return found;
}

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
  return withMemories(register, resolution, memories);
}
