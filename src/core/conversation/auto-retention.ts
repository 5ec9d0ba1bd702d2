import type { SeenRetrievals } from "../blocks/seen-retrievals.js";
import { type EngineModel, promptCost, smooth } from "../cost/engine-model.js";
import type { RetrievedBlock } from "../ordering/ordering.js";
import { SECTION_CLOSING, SECTION_OPENING } from "../prompt/rendering.js";
import type { Label } from "../text/ids.js";
import type { TokenCounter } from "../text/token-counter.js";
import type { RetentionChoice } from "./retention.js";

/** A conversation is expected to go on for so many times the turns it has had, … */
const OUTLOOK = 3;
/** … but never for more than so many: further off, what was learned of it says little. */
const FARTHEST = 75;
/** Before anything was seen, a block is as likely to come back as if the user had so many memories. */
const POOL = 150;

/** A turn that has to be composed, in tokens. */
export interface RetentionOutlook {
  /** What the conversation's turns before this one retrieved. */
  readonly seen: SeenRetrievals;
  /** Distinct blocks that this turn retrieved. */
  readonly retrieved: readonly RetrievedBlock[];
  /** The question's message. */
  readonly question: number;
  /** What stands between a question and the next one: the answer, mostly. */
  readonly answer: number;
  /** All that stands before the question, and how much of it the engine should hold. */
  readonly before: { readonly total: number; readonly cached: number };
  /** What earlier turns injected and stands in the prompt. */
  readonly standing: {
    /** Each block with its tokens. */
    readonly blocks: ReadonlyMap<Label, number>;
    /** The rest of their sections: tags and annotations. */
    readonly frames: number;
    /** Plain text in front of the first of those sections, and behind it. */
    readonly plain: { readonly inFront: number; readonly behind: number };
  };
  /** This turn's section where it goes on from what stands, and where it starts afresh; `annotations` is a part of `total`. */
  readonly going: SectionSize & { readonly newBlocks: number };
  readonly afresh: SectionSize;
}

export interface SectionSize {
  readonly total: number;
  readonly annotations: number;
}

/**
 * Ours: the retention of one turn by what the rest of the conversation is expected to cost (docs/internals/algorithms.md, "Conversations").
 * Two questions, each answered for the turns that are still to come (`ahead`, a few times those that were):
 * - Do this turn's annotations stay? They cost every later turn their attention or their price; taking them away costs the next turn
 *   the question and answer behind them.
 * - Does the prompt start afresh? That costs all plain text behind the first section and this turn's blocks once, and relieves every later turn of
 *   blocks that it does not want. Those that it does want it gives again, as likely as the block was retrieved so far.
 * Blocks are always kept until a fresh start: a block that one turn gives and the next gives again is computed twice with what follows.
 * How it compares with the fixed retentions: `docs/retention.md`.
 */
export function autoRetention(
  engine: EngineModel,
  outlook: RetentionOutlook,
  countTokens: TokenCounter,
): RetentionChoice {
  const { seen, retrieved, question, answer, before, standing, going, afresh } = outlook;
  if (seen.turns === 0 || retrieved.length === 0) return { retention: "keep", freshStart: false };
  const cost = (uncached: number, cached: number) => {
    const shared = Math.max(0, cached);
    return promptCost(smooth(engine), uncached + shared, shared);
  };
  const turn = seen.turns + 1;
  const ahead = Math.min(OUTLOOK * turn, FARTHEST);
  const novelty = noveltyOf(seen, retrieved);
  const tags = countTokens(SECTION_OPENING) + countTokens(SECTION_CLOSING);

  // A turn in the middle of those ahead.
  const size = retrieved.reduce((sum, { tokens }) => sum + tokens, 0);
  const newTokens = (size * novelty) / (turn + ahead / 2 + novelty);
  const uncached = tags + question + going.annotations + newTokens;
  const cached = before.total + (ahead / 2) * (uncached + answer);
  const usual = cost(uncached, cached);

  /** What it costs the turns ahead that so many more tokens stand in front of them. */
  const holding = (tokens: number) => (tokens === 0 ? 0 : ahead * (usual - cost(uncached, cached - tokens)));
  const behind = question + answer + countTokens(SECTION_CLOSING);
  const dropping = cost(uncached + behind, cached - behind) - usual;
  const frame = going.newBlocks === 0 ? tags : 0;
  const holdingThese = going.annotations === 0 ? 0 : holding(going.annotations + frame);
  const holdingAfresh = holding(afresh.annotations);

  // What the turns ahead are spared by a fresh start, and what they have to give again, on average.
  let spared = standing.frames;
  let again = 0;
  const wanted = new Set(retrieved.map(({ label }) => label));
  for (const [label, tokens] of standing.blocks) {
    if (wanted.has(label)) continue;
    const likelihood = seen.of(label) / (turn + novelty);
    const turnsUntilGiven = likelihood === 0 ? ahead : (1 - (1 - likelihood) ** ahead) / likelihood;
    spared += (tokens * turnsUntilGiven) / ahead;
    again += (likelihood * tokens * turnsUntilGiven) / ahead;
  }
  const staying =
    cost(before.total - before.cached + going.total + question, before.cached) +
    ahead * usual +
    Math.min(holdingThese, dropping);
  const { plain } = standing;
  const leaving =
    cost(plain.behind + afresh.total + question, plain.inFront) +
    ahead * cost(uncached + again, cached - spared) +
    Math.min(holdingAfresh, dropping);
  const freshStart = standing.blocks.size > 0 && leaving < staying;
  return { retention: (freshStart ? holdingAfresh : holdingThese) <= dropping ? "keep" : "volatile", freshStart };
}

/**
 * How many turns must retrieve a block before it is as likely as not to be known: of the blocks that a turn retrieves after `n` others,
 * `novelty / (n + novelty)` are new, if blocks come back as evenly as they did so far.
 */
function noveltyOf(seen: SeenRetrievals, retrieved: readonly RetrievedBlock[]): number {
  const { again, pairs } = seen.with(retrieved.map(({ label }) => label));
  const count = retrieved.length;
  const chance = (again + (count * count) / (count + POOL)) / (pairs + count);
  return 1 / chance - 1;
}
