import { isExchange } from "../prompt/exchange-text.js";
import type { Label, MemoryId } from "../text/ids.js";
import { sentencesOf } from "../text/sentences.js";
import type { BlockRegister } from "./block-register.js";
import type { StoredBlock } from "./context-block.js";
import type { RequestedMemory, Resolution } from "./resolution.js";

/** Which texts are given once. `exact`: equal ones. `contained`: also those whose sentences another text of the prompt has. */
export const DEDUPE_NAMES = ["exact", "contained"] as const;
export type DedupeName = (typeof DEDUPE_NAMES)[number];
export const DEFAULT_DEDUPE: DedupeName = "contained";

/** What a prompt says besides the requested blocks. */
export interface PromptTexts {
  /** Blocks that it has already and that are current. */
  readonly standing: readonly Label[];
  /** Blocks that are to be given in any case, because they supersede one that it has. */
  readonly due: ReadonlySet<Label>;
  /** The user's question; null: a tool's result. */
  readonly question: string | null;
  /** Exchanges of its messages, as they are written back. */
  readonly exchanges?: () => ReadonlySet<string>;
}

/** Sentences of a text that is looked for in others. Bounded, so that the search takes time in proportion to the texts. */
const MOST_SENTENCES = 3;
const BETWEEN = "\n";

/**
 * Leaves out the blocks whose sentences, all of them in a row, another block of the prompt or its question has, and exchanges
 * that stand in its messages. Of equal texts the one
 * that stands in the prompt stays, else the one with the lowest label; of others the one that says more. A block that the prompt has
 * already stays as it is. A memory whose block is left out is under the label that stands for it, or in `said`. The same whatever the
 * order of the memories.
 */
export function withoutContained(
  register: BlockRegister,
  resolution: Resolution,
  { standing, due, question, exchanges }: PromptTexts,
): Resolution {
  const given = new Set(standing);
  const fresh = resolution.blocks.filter(({ label }) => !given.has(label) && !due.has(label));
  if (fresh.length === 0) return resolution;
  const asked = new Set(question === null ? [] : runsOf(sentencesOf(question)));
  const inPrompt = new TextSearch(standing, register);
  const requested = new TextSearch(
    resolution.blocks.map(({ label }) => label),
    register,
  );
  let history: ReadonlySet<string> | undefined;
  const isInHistory = (text: string) => {
    history ??= exchanges?.() ?? new Set();
    return history.has(text);
  };
  const insteadOf = new Map<Label, Label | null>();
  for (const { label } of fresh) {
    const whole = register.sentencesOf(label).join(BETWEEN);
    if (whole === "") continue;
    const isSaid = asked.has(whole) || (isExchange(register.textOf(label)) && isInHistory(register.textOf(label)));
    const instead = isSaid ? null : (inPrompt.find(whole) ?? requested.find(whole) ?? label);
    if (instead !== label) insteadOf.set(label, instead);
  }
  return insteadOf.size === 0 ? resolution : replaced(register, resolution, insteadOf);
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
  const labels = new Set(memories.map(({ label }) => label));
  const blocks = [...labels].map((label) => register.get(label) as StoredBlock);
  return { ...resolution, memories, blocks, contained, said };
}

/** Finds the block that says most of those that have some sentences in a row. */
class TextSearch {
  readonly #best = new Map<string, { readonly label: Label; readonly sentences: number }>();

  constructor(labels: readonly Label[], register: BlockRegister) {
    for (const label of labels) {
      const sentences = register.sentencesOf(label);
      for (const run of runsOf(sentences)) {
        const best = this.#best.get(run);
        const isBetter =
          best === undefined ||
          sentences.length > best.sentences ||
          (sentences.length === best.sentences && label < best.label);
        if (isBetter) this.#best.set(run, { label, sentences: sentences.length });
      }
    }
  }

  find(whole: string): Label | undefined {
    return this.#best.get(whole)?.label;
  }
}

/** The whole text, and all runs of so many sentences that may be another text. */
function* runsOf(sentences: readonly string[]): Generator<string> {
  yield sentences.join(BETWEEN);
  for (let from = 0; from < sentences.length; from++) {
    const most = Math.min(MOST_SENTENCES, sentences.length - from);
    for (let count = 1; count <= most; count++) {
      if (count < sentences.length) yield sentences.slice(from, from + count).join(BETWEEN);
    }
  }
}
