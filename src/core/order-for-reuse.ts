import type { Label } from "./ids.js";
import type { RetrievedBlock } from "./ordering.js";

/** How much the relevance rank counts beside what recent requests shared, in requests that are alike throughout. */
const RANK_WEIGHT = 0.75;
/** Power of a block's tokens in its score: of two that are as likely to be wanted again, the longer one first. */
const TOKENS_POWER = 0.15;

interface LikeRequest {
  readonly blocks: ReadonlySet<Label>;
  /** Share of this request's blocks that it asked for too, squared: how likely later requests are to be like it. */
  readonly weight: number;
  /** Positions in `rest` of the blocks that it asked for. */
  readonly wanted: readonly number[];
}

/**
 * Orders the blocks that follow a cached prefix, so that later requests find a long prefix in turn. A later request is taken to be
 * like a recent one, the more likely the more that one had in common with this request. The next block is always the one that most of
 * those still want which want everything before it; the relevance rank decides where few do, as what is most relevant to one question
 * comes back with the next one of its kind. Where no recent request wants any of the blocks they stay in relevance order. Tried and
 * measured against others in `docs/ordering.md`.
 *
 * @param front blocks that stand before, in this request or carried
 * @param rest distinct blocks in relevance order
 * @param asked blocks that the whole request asked for
 */
export function orderForReuse(
  front: readonly Label[],
  rest: readonly RetrievedBlock[],
  asked: readonly Label[],
  recent: Iterable<ReadonlySet<Label>>,
): Label[] {
  const like = likeRequests(front, rest, asked, recent);
  if (like.length === 0) return rest.map(({ label }) => label);
  const shared = new Float64Array(rest.length);
  for (const { wanted, weight } of like) for (const at of wanted) shared[at] = (shared[at] ?? 0) + weight;
  const rankOf = new Map(asked.map((label, rank) => [label, rank]));
  const rank = rest.map(({ label }) => RANK_WEIGHT * (1 - (rankOf.get(label) ?? 0) / asked.length));
  const size = rest.map(({ tokens }) => tokens ** TOKENS_POWER);

  const left = rest.map((_block, at) => at);
  const ordered: Label[] = [];
  let alive = like;
  while (left.length > 0) {
    let best = 0;
    let bestScore = -1;
    for (const [i, at] of left.entries()) {
      const score = ((shared[at] ?? 0) + (rank[at] ?? 0)) * (size[at] ?? 0);
      if (score > bestScore) {
        best = i;
        bestScore = score;
      }
    }
    const [at = 0] = left.splice(best, 1);
    const label = (rest[at] as RetrievedBlock).label;
    ordered.push(label);
    alive = alive.filter(({ blocks, wanted, weight }) => {
      if (blocks.has(label)) return true;
      for (const other of wanted) shared[other] = (shared[other] ?? 0) - weight;
      return false;
    });
  }
  return ordered;
}

/** Recent requests that want everything in front and something of the rest. */
function likeRequests(
  front: readonly Label[],
  rest: readonly RetrievedBlock[],
  asked: readonly Label[],
  recent: Iterable<ReadonlySet<Label>>,
): LikeRequest[] {
  const like: LikeRequest[] = [];
  for (const blocks of recent) {
    if (!front.every((label) => blocks.has(label))) continue;
    const wanted: number[] = [];
    for (const [at, { label }] of rest.entries()) if (blocks.has(label)) wanted.push(at);
    if (wanted.length === 0) continue;
    let common = 0;
    for (const label of asked) if (blocks.has(label)) common++;
    like.push({ blocks, weight: (common / asked.length) ** 2, wanted });
  }
  return like;
}
