import type { BlockRegister } from "../blocks/block-register.js";
import type { Resolution } from "../blocks/context-block.js";
import type { CacheLookup } from "../cache/engine-cache.js";
import { type EngineModel, promptCost, smooth } from "../cost/engine-model.js";
import type { RetrievedBlock } from "../ordering/ordering.js";
import { messagesTokens } from "../prompt/prompt.js";
import { type Injection, isEmptyInjection, SECTION_CLOSING, SECTION_OPENING } from "../prompt/section.js";
import { fixedTokens, type TokenCounter } from "../text/message.js";
import { type ChosenRetention, DROPS_NOTHING, type SeenRetrievals, standingOf } from "./conversation.js";
import { type RecalledHistory, splitAtAnchor } from "./history.js";
import {
  type Annotations,
  injectionTokens,
  listed,
  planInjection,
  sectionsHaveLabels,
  supersededIn,
} from "./injecting.js";
import { memoryToRepeat } from "./repeated-memory.js";
import type { Replay } from "./replay.js";

/**
 * Expected further turns: these, and so many for each turn so far. Fewer start afresh too early in short conversations, more keep memories too
 * long where attention is dear (`bench -- retention`, with `TURNS=14` and `DEAR=1`).
 */
const OUTLOOK = { turns: 4, perTurn: 1.15 } as const;
/** Maximum of those: predictions further ahead are unreliable. */
const FARTHEST = 75;
/** Sections stay only if a turn costs less than this share of its cost without them, since fresh starts then come sooner. */
const WORTHWHILE = 0.9;
/** Prior for how often blocks return: as if the user had this many memories. */
const POOL = 150;
/** Shape of the gamma distribution of retrieval rates. Fits each recorded conversation within .11 at k = 20, 40 and 100. */
const RATES_SHAPE = 3;

interface RetentionInput {
  readonly annotations: Annotations;
  readonly engine: EngineModel;
  readonly cache: Pick<CacheLookup, "shareTokens" | "residentTokens">;
  readonly countTokens: TokenCounter;
}

/**
 * Chooses one turn's retention by the expected cost of the rest of the conversation (docs/internals/algorithms.md, "Conversations";
 * docs/retention.md). Two decisions over the expected further turns (`ahead`), which end where the prompt would outgrow its share of the cache:
 * - Keep this turn's annotations? Kept, every later turn attends over them. Dropped, the next turn recomputes the question and answer after them.
 * - Start afresh? That recomputes all plain text after the first section. Later turns are shorter but inject more. They may start afresh too, at any
 *   turn and then in a rhythm of their own. Between fresh starts blocks stay: one that returns would be recomputed twice, with all after it.
 *
 * @param replay of the earlier turns without a fresh start
 * @param resolution the request's memories
 */
export function chooseRetention(
  register: BlockRegister,
  { annotations, engine, cache, countTokens }: RetentionInput,
  history: RecalledHistory,
  replay: Replay,
  resolution: Resolution,
): ChosenRetention {
  const { conversation, turns: recalled, placement, changes } = history;
  const requested = resolution.blocks;
  const seen = conversation.seenOn(recalled.map(({ turn }) => turn));
  if (seen.turns === 0 || requested.length === 0) return { retention: "keep", ...DROPS_NOTHING };
  const { shareTokens } = cache;
  const best = memoryToRepeat(register, resolution);
  const split = splitAtAnchor(history.rest, placement);
  /** This turn's section in a prompt in which earlier turns injected these. */
  const sectionAfter = (given: readonly Injection[]): SectionSize => {
    const standing = standingOf(given);
    const superseded = supersededIn(register, standing);
    const injection = planInjection(
      {
        superseded,
        requested,
        best,
        standing,
        // In relevance order: a possible order annotation is not counted.
        placed: listed(requested, standing, superseded).map(({ label }) => label),
        carried: new Set(),
        placement,
        wanted: annotations,
        hasLabels: sectionsHaveLabels(given, annotations),
      },
      register,
    );
    const total = injectionTokens(injection, placement, register, countTokens);
    const bare = { blocks: injection.blocks, annotations: [] };
    const annotationTokens = total - injectionTokens(bare, placement, register, countTokens);
    return { blocks: injection.blocks.length, total, annotations: annotationTokens };
  };
  const going = sectionAfter(replay.turns.map(({ injection }) => injection));
  const afresh = sectionAfter([]);
  const question = messagesTokens(split.question.messages, countTokens);
  const answered = messagesTokens(split.answer.messages, countTokens);
  const answers = [...replay.turns.slice(1).map(({ tokens }) => tokens.answer), answered];
  const answer = answers.reduce((sum, tokens) => sum + tokens, 0) / answers.length;
  // The engine computed the answer, so it is cached too. Restated text may reach the engine unchanged, so nothing is dropped because of it.
  const isWhole = replay.cachedTokens === replay.tokens || recalled.some(({ isRestated }) => isRestated);
  const total = replay.tokens + answered;
  const held = Math.min(isWhole ? total : replay.cachedTokens, cache.residentTokens);
  const standing = standingText(replay, answered);
  const plain = standing.inFront + standing.after;
  const law = smooth(engine);
  // On average, half of the block in which a prefix ends is computed again.
  const unaligned = (engine.blockTokens - 1) / 2;
  const cost = (uncached: number, cached: number) => {
    const shared = Math.max(0, cached);
    return promptCost(law, uncached + shared, Math.max(0, shared - unaligned));
  };
  const turns = seen.turns + 1;
  const chance = chanceOf(seen, requested);
  const tags = fixedTokens(SECTION_OPENING, countTokens) + fixedTokens(SECTION_CLOSING, countTokens);
  // A fresh start would begin with other instructions.
  const front = changes !== null ? 0 : Math.min(standing.inFront, held);

  // A prompt that is longer than its share is computed whole at the next turn, so the turns ahead end there.
  const longer = question + answer + going.total;
  const room = shareTokens - (total + going.total + question);
  const isOutgrown = room < longer && afresh.total < total - plain + going.total;
  if (isOutgrown && standing.turns > 0) {
    // Without the fixed cost, which does not depend on length.
    const own = (uncached: number, cached: number) => cost(uncached, cached) - cost(0, 0);
    const keptTurns = turnsToKeep({
      replay,
      sectionAfter,
      shareTokens,
      question,
      answered,
      answer,
      chance,
      held,
      cost: own,
    });
    return { retention: "keep", freshStart: true, keptTurns, freshStartReason: "share" };
  }
  const ahead = Math.max(1, Math.floor(Math.min(OUTLOOK.turns + OUTLOOK.perTurn * turns, FARTHEST, room / longer)));

  // A turn halfway through those ahead.
  const size = requested.reduce((sum, { tokens }) => sum + tokens, 0);
  /** Tokens of the turn after so many others whose sections stand. */
  const sent = (others: number) => tags + question + going.annotations + size * newShare(others, chance);
  const uncached = sent(standing.turns + ahead / 2);
  const cached = total + (ahead / 2) * (uncached + answer);
  const usual = cost(uncached, cached);

  /** Cost for all turns ahead of so many additional tokens before them. */
  const holding = (tokens: number) => (tokens === 0 ? 0 : ahead * (usual - cost(uncached, cached - tokens)));
  const rest = question + answer + fixedTokens(SECTION_CLOSING, countTokens);
  const dropping = cost(uncached + rest, cached - rest) - usual;
  const frame = going.blocks === 0 ? tags : 0;
  const holdingThese = going.annotations === 0 ? 0 : holding(going.annotations + frame);

  if (standing.turns === 0) return { retention: holdingThese <= dropping ? "keep" : "volatile", ...DROPS_NOTHING };

  const holdingAfresh = holding(afresh.annotations);
  const exchange = question + answer;
  /** Cost of a fresh start after so much plain text, of which so much is cached. */
  const starting = (plainThen: number, front: number) => cost(plainThen - front + afresh.total + question, front);
  /** Cost of the turn after so many others and a prompt of so many tokens, and how many stand then. */
  const next = (others: number, length: number) => {
    const tokens = sent(others);
    return { cost: cost(tokens, length), length: length + tokens + answer };
  };

  // Once the turns ahead start afresh: the least mean cost of a turn with a start every so many, and that of the start itself.
  const rhythm = { mean: Number.POSITIVE_INFINITY, start: 0 };
  const plainLater = plain + (ahead / 2) * exchange;
  let between = 0;
  let length = plainLater + afresh.total + exchange;
  for (let every = 1; every <= ahead; every++) {
    const start = starting(plainLater, Math.max(0, plainLater - every * exchange));
    const mean = (start + between) / every;
    if (mean < rhythm.mean) Object.assign(rhythm, { mean, start });
    const turnAfter = next(every, length);
    between += turnAfter.cost;
    length = turnAfter.length;
  }
  /** Least cost of the turns ahead, with the next fresh start at any of them or at none. */
  const outlook = (from: number, others: number, inFront: number) => {
    let [sum, least, stands] = [0, Number.POSITIVE_INFINITY, from];
    for (let turn = 0; turn < ahead; turn++) {
      const start = starting(plain + (turn + 1) * exchange, inFront);
      least = Math.min(least, sum + start - rhythm.start + (ahead - turn) * rhythm.mean);
      const turnAfter = next(others + turn, stands);
      sum += turnAfter.cost;
      stands = turnAfter.length;
    }
    return Math.min(least, sum);
  };
  const staying =
    cost(total - held + going.total + question, held) +
    outlook(total + going.total + exchange, standing.turns + 1, front) +
    Math.min(holdingThese, dropping);
  const leaving =
    starting(plain, front) + outlook(plain + afresh.total + exchange, 1, plain) + Math.min(holdingAfresh, dropping);
  const freshStart = leaving < staying;
  const isKept = (freshStart ? holdingAfresh : holdingThese) <= dropping;
  const freshStartReason = freshStart ? "cost" : null;
  return { retention: isKept ? "keep" : "volatile", freshStart, keptTurns: 0, freshStartReason };
}

interface OutgrownPrompt {
  readonly replay: Replay;
  readonly sectionAfter: (given: readonly Injection[]) => SectionSize;
  readonly shareTokens: number;
  /** Tokens of this turn's question, of the answer before it, and of a usual one. */
  readonly question: number;
  readonly answered: number;
  readonly answer: number;
  readonly chance: number;
  /** Leading tokens that are cached. */
  readonly held: number;
  readonly cost: (uncached: number, cached: number) => number;
}

/** How many turns keep their sections, which are cached, if a prompt outgrew its share: the least mean cost of a turn until the next fresh start. */
function turnsToKeep(outgrown: OutgrownPrompt): number {
  const { sectionAfter, question, answered, held, cost } = outgrown;
  const { headTokens, turns } = outgrown.replay;
  const plain = turns.reduce((sum, { tokens }) => sum + tokens.answer + tokens.question, answered + question);
  const kept: Injection[] = [];
  const best = { turns: 0, mean: Number.POSITIVE_INFINITY };
  let [before, keptTokens] = [headTokens, 0];
  for (const [at, { injection, tokens }] of turns.entries()) {
    before += tokens.answer;
    if (!isEmptyInjection(injection)) {
      // So many stay, and from here on the prompt is another.
      if (isPowerOfTwo(kept.length)) {
        const { total } = sectionAfter(kept);
        const length = headTokens + plain + keptTokens + total;
        const cached = Math.min(before, held);
        const mean = meanUntilOutgrown(outgrown, cost(length - cached, cached), length, total);
        if (mean < WORTHWHILE * best.mean) Object.assign(best, { turns: kept.length === 0 ? 0 : at, mean });
      }
      kept.push(injection);
      keptTokens += tokens.section;
    }
    before += tokens.section + tokens.question;
  }
  return best.turns;
}

/** Mean cost of a turn from a fresh start until the prompt outgrows its share again; infinite if at once. */
function meanUntilOutgrown(
  { shareTokens, question, answer, chance, cost }: OutgrownPrompt,
  starting: number,
  length: number,
  sectionTokens: number,
): number {
  let [sum, count, stands] = [starting, 1, length + answer];
  if (stands > shareTokens) return Number.POSITIVE_INFINITY;
  for (; count < FARTHEST; count++) {
    const sent = question + sectionTokens * newShare(count, chance);
    if (stands + sent > shareTokens) break;
    sum += cost(sent, stands);
    stands += sent + answer;
  }
  return sum / count;
}

/** Also 0: of many sections only some counts are tried. */
function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0;
}

/** The chance that another turn retrieved a block that this one retrieves. */
function chanceOf(seen: SeenRetrievals, retrieved: readonly RetrievedBlock[]): number {
  const { again, pairs } = seen.with(retrieved.map(({ label }) => label));
  const count = retrieved.length;
  return (again + (count * count) / (count + POOL)) / (pairs + count);
}

/** The share of a retrieval that none of so many others has. */
function newShare(others: number, chance: number): number {
  return (1 + others * ((1 - chance) ** (-1 / RATES_SHAPE) - 1)) ** -RATES_SHAPE;
}

interface SectionSize {
  readonly blocks: number;
  /** Tokens. */
  readonly total: number;
  /** Part of the total. */
  readonly annotations: number;
}

/** How many turns' blocks the prompt still has; tokens of plain text before the first section of earlier turns, and after it. */
function standingText(replay: Replay, answered: number) {
  const standing = { turns: 0, inFront: replay.headTokens, after: 0 };
  let place: "inFront" | "after" = "inFront";
  for (const { injection, tokens } of replay.turns) {
    standing[place] += tokens.answer;
    if (!isEmptyInjection(injection)) place = "after";
    standing[place] += tokens.question;
    if (injection.blocks.length > 0) standing.turns++;
  }
  standing[place] += answered;
  return standing;
}
