import type { Label } from "../text/ids.js";
import { smallest } from "../text/lists.js";
import { LruMap } from "../text/lru-map.js";
import type { WorkerBlocks } from "./worker-blocks.js";

/** How far above the mean the load of a worker may be, as a share of the mean, for it to get a request for the sake of its blocks. */
export const DEFAULT_SLACK = 0.1;
/** The same in tokens, for single requests: with little load, one request more is no overload. */
const LEAD_TOKENS = 8_192;
/** What a token of load above the least loaded worker's costs, in tokens that a worker holds. */
const LOAD_PRICE = 0.05;
/** Milliseconds after which a token counts half as load: an engine has long processed what was sent minutes ago. */
const HALF_LIFE_MS = 10_000;
/** Maximum workers of one tenant whose load is known, LRU. */
const MAX_LOADS = 1_024;

/** A worker, as one request sees it. Loads and sizes are in tokens. */
interface Candidate {
  readonly name: string;
  readonly load: number;
  /** Tokens of the request that the worker has processed, less what its load costs. */
  readonly held: number;
}

/**
 * The worker that holds most of a request, among those whose load is at most `mostLoad` before it; ties go to the least loaded, then to the
 * first. Where all are above: the least loaded. Expects at least one candidate.
 */
export function chooseWorker<C extends Candidate>(candidates: readonly C[], mostLoad: number): C {
  const within = candidates.filter(({ load }) => load <= mostLoad);
  if (within.length === 0) return candidates.reduce((least, other) => (other.load < least.load ? other : least));
  return within.reduce((best, other) => {
    const isBetter = other.held > best.held || (other.held === best.held && other.load < best.load);
    return isBetter ? other : best;
  });
}

/** Recent tokens of a tenant's workers: each token counts half after {@link HALF_LIFE_MS}. In memory only; a restart begins at 0. */
export class WorkerLoads {
  readonly #loads = new LruMap<string, { readonly tokens: number; readonly at: number }>(MAX_LOADS);

  /** A worker gets a prompt. @param now milliseconds */
  add(name: string, tokens: number, now: number): void {
    const [before = 0] = this.of([name], now);
    this.#loads.set(name, { tokens: before + tokens, at: now });
  }

  /** The loads of some workers, in their order; 0 for one that is not known. */
  of(names: readonly string[], now: number): readonly number[] {
    return names.map((name) => {
      const load = this.#loads.get(name);
      return load === undefined ? 0 : decayed(load, now);
    });
  }
}

/** A clock that was set back changes nothing. */
function decayed({ tokens, at }: { readonly tokens: number; readonly at: number }, now: number): number {
  return tokens * 2 ** (-Math.max(0, now - at) / HALF_LIFE_MS);
}

/** A composed prompt, as far as its routing reads it. */
export interface RoutedPrompt {
  /** Tokens of the whole prompt. */
  readonly tokens: number;
  /** The blocks that this prompt adds to its history. */
  readonly blocks: readonly { readonly label: Label; readonly tokens: number }[];
  /** The worker that got the conversation's previous prompt, and how many tokens of this one it has cached; null: a first or single prompt. */
  readonly history: { readonly worker: string; readonly tokens: number } | null;
}

/**
 * Chooses the worker of one prompt among `names` (at least one): the one that holds most of it, by tokens, less {@link LOAD_PRICE} of its
 * load above the least loaded; one whose load is more than 10 % of the mean and {@link LEAD_TOKENS} above the mean is overloaded. What holds
 * a prompt are the blocks that the worker processed in this scope; of a prompt that continues a conversation, its history: nothing behind
 * the history can hit anywhere else. Changes nothing.
 *
 * @param processedBy the blocks of the scope that workers processed
 * @param now milliseconds, of the clock that `loads` go by
 */
export function routePrompt(
  { tokens, blocks, history }: RoutedPrompt,
  names: readonly string[],
  processedBy: Pick<WorkerBlocks, "of">,
  loads: Pick<WorkerLoads, "of">,
  now: number,
): string {
  const heldBy = (name: string): number => {
    if (history !== null) return name === history.worker ? history.tokens : 0;
    const processed = processedBy.of(name);
    return blocks.reduce((sum, block) => (processed.has(block.label) ? sum + block.tokens : sum), 0);
  };
  const before = loads.of(names, now);
  const least = smallest(before);
  const candidates = names.map((name, at) => {
    const load = before[at] ?? 0;
    return { name, load, held: heldBy(name) - LOAD_PRICE * (load - least) };
  });
  const mean = before.reduce((sum, load) => sum + load, tokens) / names.length;
  return chooseWorker(candidates, (1 + DEFAULT_SLACK) * mean + LEAD_TOKENS).name;
}
