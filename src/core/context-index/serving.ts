import type { NodeId } from "../text/ids.js";
import type { ContextIndex } from "./context-index.js";
import type { Foreseen, ResidencyModel, SectionTokens } from "./residency.js";

/** How much of a conversation's earlier turns the index holds. */
export interface KnownTurns {
  /** How many of the prompt's sections belong to a prompt that is held whole … */
  readonly sections: number;
  /** … the node where its blocks end … */
  readonly end: NodeId | null;
  /** … and the tokens of the held prefix. */
  readonly tokens: number;
}

type Foresight = { readonly foresee?: ResidencyModel["foresee"] | undefined };

/** The result of serving a prompt. */
export interface Served extends Foreseen {
  /** Node of the index where the prompt's blocks end. */
  readonly leaf: NodeId;
}

/**
 * Adds a prompt to the index at logical time `clock` and `at` in milliseconds since the epoch, and returns what of it should hit.
 *
 * @param sections the prompt's sections, first to last: those of earlier turns, then its own
 */
export function serve(
  index: ContextIndex,
  { foresee }: Foresight,
  sections: readonly SectionTokens[],
  known: KnownTurns,
  clock: number,
  at: number,
): Served {
  const foreseen = heldTokens(index, { foresee }, sections, known);
  const insert = ({ anchor, labels, before, behind }: SectionTokens, follows: NodeId | null) =>
    index.insert(anchor, labels, clock, { at, follows, tokensBefore: before, tokensBehind: behind });
  const last = sections.at(-1) as SectionTokens;
  const { cachedTokens, cachedBlocks, replaces } = foreseen;
  if (foresee === undefined && sections.length === 1)
    return { cachedTokens, cachedBlocks, replaces, leaf: insert(last, known.end) };
  // A slot model compares whole prompts, so the earlier turns have to be in the index too. Restated turns are in no other prompt.
  const passed: NodeId[] = [];
  for (const section of sections.slice(known.sections, -1)) passed.push(insert(section, passed.at(-1) ?? known.end));
  const leaf = insert(last, passed.at(-1) ?? known.end);
  for (const turn of passed) index.evict(turn);
  // Only now: the prefix that both share keeps its nodes.
  if (replaces !== null) index.evict(replaces);
  return { cachedTokens, cachedBlocks, replaces, leaf };
}

/** What a prompt with these sections should hit. */
export function heldTokens(
  index: ContextIndex,
  { foresee }: Foresight,
  sections: readonly SectionTokens[],
  known: KnownTurns,
): Foreseen {
  return foresee === undefined ? allHeld(index, sections, known) : foresee(index, sections);
}

/** The hit if everything in the index hits. */
function allHeld(index: ContextIndex, sections: readonly SectionTokens[], known: KnownTurns): Foreseen {
  const last = sections.at(-1);
  if (last === undefined || !index.hasAnchor(last.anchor)) {
    // Of blocks without labels others may have shared what is before them.
    const before = sections.at(-2);
    const isShared = before !== undefined && before.labels.length === 0 && index.hasAnchor(before.anchor);
    const cachedTokens = Math.max(known.tokens, isShared ? before.upTo(0, false) : 0);
    return { cachedTokens, cachedBlocks: 0, replaces: null };
  }
  const cachedBlocks = index.heldBlocks(last.anchor, last.labels);
  return { cachedTokens: last.upTo(cachedBlocks, false), cachedBlocks, replaces: null };
}
