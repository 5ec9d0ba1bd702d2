import type { SeenRetrievals } from "../blocks/seen-retrievals.js";
import { type EngineModel, promptCost, smooth } from "../cost/engine-model.js";
import type { RetrievedBlock } from "../ordering/ordering.js";
import { SECTION_CLOSING, SECTION_OPENING } from "../prompt/rendering.js";
import type { Label } from "../text/ids.js";
import type { TokenCounter } from "../text/token-counter.js";
import type { RetentionChoice } from "./retention.js";

/** Expected further turns of a conversation, as a multiple of its turns so far, … */
const OUTLOOK = 3;
/** … and their maximum: predictions further ahead are unreliable. */
const FARTHEST = 75;
/** Prior: until something is observed, a block returns as often as if the user had this many memories. */
const POOL = 150;

/** A turn to be composed, in tokens. */
export interface RetentionOutlook {
  /** What the conversation's turns before this one retrieved. */
  readonly seen: SeenRetrievals;
  /** Distinct blocks that this turn retrieved. */
  readonly retrieved: readonly RetrievedBlock[];
  /** Tokens of the question's message. */
  readonly question: number;
  /** Tokens between a question and the next one, mostly the answer. */
  readonly answer: number;
  /** Tokens before the question, and how many of them the engine should hold. */
  readonly before: { readonly total: number; readonly cached: number };
  /** What earlier turns injected and the prompt still contains. */
  readonly standing: {
    /** Each block with its tokens. */
    readonly blocks: ReadonlyMap<Label, number>;
    /** The rest of those sections: tags and annotations. */
    readonly frames: number;
    /** Plain text before the first of those sections, and after it. */
    readonly plain: { readonly inFront: number; readonly behind: number };
  };
  /** This turn's section if it extends the prompt, and if it starts afresh; `annotations` is part of `total`. */
  readonly going: SectionSize & { readonly newBlocks: number };
  readonly afresh: SectionSize;
  /** Tokens that a prompt may have to be still cached at the next turn. */
  readonly share: number;
}

export interface SectionSize {
  readonly total: number;
  readonly annotations: number;
}

/**
 * Chooses the retention of one turn by the expected cost of the rest of the conversation; memstem's own (docs/internals/algorithms.md,
 * "Conversations"). Two decisions, each by its cost over the expected further turns (`ahead`, a multiple of the past turns):
 * - Keep this turn's annotations? Kept, every later turn attends over them or is billed for them. Dropped, the next turn recomputes the
 *   question and answer behind them.
 * - Start afresh? That recomputes all plain text behind the first section and this turn's blocks once, and spares every later turn the
 *   blocks that it does not want. Blocks that it wants are injected again, as often as they were retrieved so far. Blocks are never dropped
 *   between fresh starts: a block injected by one turn and again by the next would be recomputed twice with everything behind it.
 * The turns ahead end where the prompt would outgrow its share of the engine's cache: from there on it would be computed whole, so before that
 * it starts afresh. Comparison with the fixed retentions: `docs/retention.md`.
 */
export function autoRetention(
  engine: EngineModel,
  outlook: RetentionOutlook,
  countTokens: TokenCounter,
): RetentionChoice {
  const { seen, retrieved, question, answer, before, standing, going, afresh, share } = outlook;
  if (seen.turns === 0 || retrieved.length === 0) return { retention: "keep", freshStart: false };
  const cost = (uncached: number, cached: number) => {
    const shared = Math.max(0, cached);
    return promptCost(smooth(engine), uncached + shared, shared);
  };
  const turn = seen.turns + 1;
  const novelty = noveltyOf(seen, retrieved);
  const tags = countTokens(SECTION_OPENING) + countTokens(SECTION_CLOSING);

  const { plain } = standing;
  const front = Math.min(plain.inFront, before.cached);

  // A prompt that is longer than its share is computed whole at the next turn, so the turns ahead end there.
  const longer = question + answer + going.total;
  const room = share - (before.total + going.total + question);
  const isOutgrown = room < longer && afresh.total < before.total - plain.inFront - plain.behind + going.total;
  if (isOutgrown && standing.blocks.size > 0) return { retention: "keep", freshStart: true };
  const ahead = Math.max(1, Math.min(OUTLOOK * turn, FARTHEST, Math.floor(room / longer)));

  // A turn halfway through those ahead.
  const size = retrieved.reduce((sum, { tokens }) => sum + tokens, 0);
  const newTokens = (size * novelty) / (turn + ahead / 2 + novelty);
  const uncached = tags + question + going.annotations + newTokens;
  const cached = before.total + (ahead / 2) * (uncached + answer);
  const usual = cost(uncached, cached);

  /** Cost for all turns ahead of so many additional tokens before them. */
  const holding = (tokens: number) => (tokens === 0 ? 0 : ahead * (usual - cost(uncached, cached - tokens)));
  const behind = question + answer + countTokens(SECTION_CLOSING);
  const dropping = cost(uncached + behind, cached - behind) - usual;
  const frame = going.newBlocks === 0 ? tags : 0;
  const holdingThese = going.annotations === 0 ? 0 : holding(going.annotations + frame);
  const holdingAfresh = holding(afresh.annotations);

  // What a fresh start spares the turns ahead, and what they inject again, on average.
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
  const leaving =
    cost(plain.inFront + plain.behind - front + afresh.total + question, front) +
    ahead * cost(uncached + again, cached - spared) +
    Math.min(holdingAfresh, dropping);
  const freshStart = standing.blocks.size > 0 && leaving < staying;
  return { retention: (freshStart ? holdingAfresh : holdingThese) <= dropping ? "keep" : "volatile", freshStart };
}

/**
 * The number of retrievals after which a block is as likely as not to be known. Of the blocks that a turn retrieves after `n` others,
 * `novelty / (n + novelty)` are new, if blocks return as often as they did so far.
 */
function noveltyOf(seen: SeenRetrievals, retrieved: readonly RetrievedBlock[]): number {
  const { again, pairs } = seen.with(retrieved.map(({ label }) => label));
  const count = retrieved.length;
  const chance = (again + (count * count) / (count + POOL)) / (pairs + count);
  return 1 / chance - 1;
}
