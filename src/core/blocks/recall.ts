import type { BlockRegister } from "./block-register.js";
import type { RenderedMemory } from "./context-block.js";

/** Memories that share words with the query, best first by inverse document frequency: the fallback while the source fails. None of a run. */
export function recallKnown(register: BlockRegister, query: string, topK: number): RenderedMemory[] {
  const wanted = wordsOf(query);
  const known = [...register.current()].flatMap((block) => {
    const id = register.commonWith(block.label);
    return id === undefined ? [] : [{ id, block, words: wordsOf(block.text) }];
  });
  const frequency = new Map<string, number>();
  for (const { words } of known) {
    for (const word of words) if (wanted.has(word)) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  }
  const weight = (word: string) => Math.log(1 + known.length / (frequency.get(word) ?? Number.POSITIVE_INFINITY));
  return known
    .map(({ id, block, words }) => ({
      id,
      block,
      score: [...wanted].reduce((sum, word) => sum + (words.has(word) ? weight(word) : 0), 0),
    }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || a.block.label - b.block.label)
    .slice(0, topK)
    .map(({ id, block }) => {
      const until = register.memories.factsOf(id).until;
      return {
        id,
        text: block.text,
        ...(register.memories.isDated(id, block.label) && { dated: true as const }),
        ...(until === undefined ? {} : { end: { until } }),
      };
    });
}

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []);
}
