import type { NodeId } from "../text/ids.js";
import type { ContextIndex } from "./context-index.js";
import type { Foreseen, ResidencyModel, SectionTokens } from "./residency-model.js";

/** How far the index knows a conversation's earlier turns. */
export interface KnownTurns {
  /** How many of the prompt's sections are in a prompt that is held whole … */
  readonly sections: number;
  /** … where its blocks end … */
  readonly end: NodeId | null;
  /** … and tokens that earlier prompts began with and that are held. */
  readonly tokens: number;
}

type Foresight = { readonly foresee?: ResidencyModel["foresee"] | undefined };

/** What serving a prompt comes to. */
export interface Served extends Foreseen {
  /** Node of the index where its blocks end. */
  readonly leaf: NodeId;
}

/**
 * Takes a prompt into the index, at logical time `clock` and `at` in milliseconds since the epoch, and says what of it should hit.
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
  if (foresee === undefined && sections.length === 1) return { ...foreseen, leaf: insert(last, known.end) };
  // What one prompt holds is told from what another does by all that it begins with, so its earlier turns have to be there, too. And those
  // that were said again are in no other.
  const passed: NodeId[] = [];
  for (const section of sections.slice(known.sections, -1)) passed.push(insert(section, passed.at(-1) ?? known.end));
  const leaf = insert(last, passed.at(-1) ?? known.end);
  for (const turn of passed) index.evict(turn);
  // Only now: what both begin with stays, and so does its place in the tree.
  if (foreseen.replaces !== null) index.evict(foreseen.replaces);
  return { ...foreseen, leaf };
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

/** What hits where all that is held does. */
function allHeld(index: ContextIndex, sections: readonly SectionTokens[], known: KnownTurns): Foreseen {
  const last = sections.at(-1);
  if (last === undefined || !index.hasAnchor(last.anchor)) {
    return { cachedTokens: known.tokens, cachedBlocks: 0, replaces: null };
  }
  const cachedBlocks = index.heldBlocks(last.anchor, last.labels);
  return { cachedTokens: last.upTo(cachedBlocks, false), cachedBlocks, replaces: null };
}
