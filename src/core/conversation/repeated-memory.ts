/* repeated memory: which text the line after a section repeats. Repeating a text makes it likelier, be it true, stale or false. */

import type { BlockRegister } from "../blocks/block-register.js";
import type { Resolution } from "../blocks/context-block.js";
import { endOfDay, type GivenTime, instantOf } from "../text/given-time.js";
import type { Label } from "../text/ids.js";

/** Ranks compared: the best, and two after it. */
const COMPARED = 3;
/** Least Jaccard overlap of two texts that say nearly the same. Figures: docs/quality.md, "What is repeated". */
const NEARLY_THE_SAME = 0.4;

/** The best memory, or the newest of those after it that say nearly the same of the same subject. Null: none, or one of an untrusted origin. */
export function memoryToRepeat(
  register: BlockRegister,
  { blocks, memories }: Pick<Resolution, "blocks" | "memories">,
): Label | null {
  const [best, ...next] = blocks.slice(0, COMPARED).map(({ label }) => label);
  if (best === undefined) return null;
  const writtenAt = (label: Label) =>
    memories.reduce(
      (newest, memory) => (memory.label === label ? Math.max(newest, instantIn(memory.writtenAt)) : newest),
      Number.NEGATIVE_INFINITY,
    );
  let [chosen, at] = [best, writtenAt(best)];
  // Of an unknown age nothing is newer.
  const words = at === Number.NEGATIVE_INFINITY ? null : contentOf(register.wordsOf(best));
  for (const label of words === null ? [] : next) {
    const newer = writtenAt(label);
    if (words === null || newer <= at || overlap(words, contentOf(register.wordsOf(label))) < NEARLY_THE_SAME) continue;
    [chosen, at] = [label, newer];
  }
  return register.isUntrusted(chosen) ? null : chosen;
}

/** Unknown times are the oldest. */
function instantIn(time: GivenTime | undefined): number {
  const instant = time === undefined ? null : (instantOf(time) ?? endOfDay(String(time)));
  return instant ?? Number.NEGATIVE_INFINITY;
}

interface Content {
  /** The first word, such as a name. */
  readonly subject: string;
  readonly words: ReadonlySet<string>;
}

const WORD = /[\p{L}\p{N}$]+(?:['’.-][\p{L}\p{N}]+)*/gu;
const ENDING = /^(.{3,})(?:ing|ed|es|s)$/u;
/** Words that most sentences have. */
const COMMON = new Set(
  [
    "a an the is are was were be been being to of in on at for with and or as has have had her his their its it that this",
    "he she they by from who which about into also just now currently recently still new old more very really him them",
  ].flatMap((line) => line.split(" ")),
);

function contentOf(text: string): Content {
  const stems = (text.match(WORD) ?? []).map((word) =>
    word
      .toLowerCase()
      .replace(/['’]s$/, "")
      .replace(ENDING, "$1"),
  );
  return { subject: stems[0] ?? "", words: new Set(stems.filter((stem) => !COMMON.has(stem))) };
}

/** Jaccard overlap of the words; 0 for two subjects. */
function overlap(a: Content, b: Content): number {
  if (a.subject !== b.subject) return 0;
  const shared = [...a.words].filter((word) => b.words.has(word)).length;
  return shared / Math.max(1, a.words.size + b.words.size - shared);
}
