import { LruMap } from "../core/index.js";
import { type CacheOutcome, limitOf, type PrefixCache, type SimulatedPrompt } from "./prefix-cache.js";
import { type TokenNode, TokenTree } from "./token-tree.js";

/** What differs between providers whose caches match at breakpoints only. */
export interface BreakpointRules {
  readonly name: string;
  /** Tokens of the shortest cached prefix; a shorter one is ignored without an error, as the APIs do. */
  readonly minimumTokens: number;
  /** Most breakpoints of a prompt. */
  readonly maxBreakpoints: number;
  /** How many of a prompt's breakpoints are written, the last ones … */
  readonly writes: number;
  /** … and how many are looked up. */
  readonly lookUps: number;
  /** Block ends that a look-up tries backwards from its breakpoint, which is the first. */
  readonly lookBackBlocks: number;
  readonly ttlMs: number;
}

export interface BreakpointCacheOptions {
  /** Depends on the model: Anthropic 512 to 4,096, OpenAI 1,024. */
  readonly minimumTokens?: number | undefined;
  /** TTL of a prefix after its last use, in milliseconds. */
  readonly ttlMs?: number | undefined;
}

/** A prompt that the API would reject; nothing was looked up or written. */
export class BreakpointError extends Error {
  override readonly name = "BreakpointError";
  constructor(
    readonly offsets: readonly number[],
    readonly reason: string,
  ) {
    super(`breakpoints ${offsets.join(", ")}: ${reason}`);
  }
}

/**
 * Anthropic: at most 4 breakpoints. "Cache writes happen only at your breakpoint"; a read tries "at most 20 positions per breakpoint,
 * counting the breakpoint itself as the first", for prefixes that earlier requests wrote (Claude's prompt caching guide). Without
 * `blockEnds` the breakpoints are the only positions. 5 minutes unless used again; 1,024 tokens is the minimum of most models.
 */
export function anthropicCache({
  minimumTokens = 1_024,
  ttlMs = 5 * 60_000,
}: BreakpointCacheOptions = {}): PrefixCache {
  const limits = { maxBreakpoints: 4, writes: 4, lookUps: 4, lookBackBlocks: 20 };
  return new BreakpointCache({ name: "anthropic", minimumTokens, ttlMs, ...limits });
}

/**
 * OpenAI GPT-5.6 and later with `mode: "explicit"`: "writes up to the latest four explicit breakpoints", "considers up to the latest 80
 * breakpoints", each exactly (API reference, `prompt_cache_options`; the guide gives another number for the second). The one `ttl`
 * there is, 30 minutes, is a minimum; that use prolongs it is assumed.
 */
export function openAiBreakpointCache({
  minimumTokens = 1_024,
  ttlMs = 30 * 60_000,
}: BreakpointCacheOptions = {}): PrefixCache {
  const limits = { maxBreakpoints: Number.POSITIVE_INFINITY, writes: 4, lookUps: 80, lookBackBlocks: 1 };
  return new BreakpointCache({ name: "openai-breakpoints", minimumTokens, ttlMs, ...limits });
}

/**
 * A cache of prefixes that end at breakpoints, and of no others: a prompt hits the longest one that it begins with and looks up. Hits and
 * writes count as uses. Tokens between the hit and the last breakpoint are billed as written.
 */
export class BreakpointCache implements PrefixCache {
  readonly #tree = new TokenTree();
  /** Nodes at whose ends a prefix was written. */
  readonly #written = new LruMap<TokenNode, TokenNode>();
  readonly #ttlMs: number;

  constructor(private readonly rules: BreakpointRules) {
    this.#ttlMs = limitOf(rules, "ttlMs");
  }

  get name(): string {
    return this.rules.name;
  }

  get heldTokens(): number {
    return this.#tree.heldTokens;
  }

  serve(prompt: SimulatedPrompt, now: number): CacheOutcome {
    const { tokens } = prompt;
    const breakpoints = this.#breakpointsOf(prompt);
    for (const node of this.#written.values()) {
      if (node.usedAt > now - this.#ttlMs) break;
      this.#written.delete(node);
      this.#prune(node);
    }
    const found = this.#longestWritten(tokens, lookedUp(breakpoints, prompt.blockEnds ?? [], this.rules));
    if (found !== null) this.#use(found, now);
    const writes = breakpoints.filter((offset) => offset >= this.rules.minimumTokens).slice(-this.rules.writes);
    for (const offset of writes) this.#use(this.#nodeAt(tokens, offset), now);
    const cachedTokens = found?.end ?? 0;
    return { cachedTokens, writtenTokens: Math.max(0, (writes.at(-1) ?? 0) - cachedTokens) };
  }

  clear(): void {
    this.#tree.clear();
    this.#written.clear();
  }

  #use(node: TokenNode, now: number): void {
    node.usedAt = now;
    this.#written.set(node, node);
  }

  #breakpointsOf({ tokens, breakpoints = [], blockEnds = [] }: SimulatedPrompt): readonly number[] {
    for (const offsets of [breakpoints, blockEnds]) {
      if (!isAscendingUpTo(tokens.length, offsets)) {
        throw new BreakpointError(offsets, `not whole numbers that ascend from 1 to ${tokens.length}`);
      }
    }
    const { maxBreakpoints, name } = this.rules;
    if (breakpoints.length > maxBreakpoints) {
      throw new BreakpointError(breakpoints, `${name} takes at most ${maxBreakpoints}`);
    }
    return breakpoints;
  }

  #longestWritten(tokens: readonly number[], offsets: ReadonlySet<number>): TokenNode | null {
    let longest: TokenNode | null = null;
    for (const node of this.#tree.along(tokens)) {
      if (offsets.has(node.end) && this.#written.has(node)) longest = node;
    }
    return longest;
  }

  #nodeAt(tokens: readonly number[], end: number): TokenNode {
    const { node } = this.#tree.descend(tokens, end);
    return node.end === end ? node : this.#tree.append(node, tokens, end);
  }

  /** Removes a node and its ancestors, as far as no written prefix needs them. */
  #prune(from: TokenNode): void {
    let node = from;
    while (node.parent !== null && node.children.size === 0 && !this.#written.has(node)) {
      this.#tree.remove(node);
      node = node.parent;
    }
  }
}

/** The offsets at which a hit may end. */
function lookedUp(
  breakpoints: readonly number[],
  blockEnds: readonly number[],
  { lookUps, lookBackBlocks }: BreakpointRules,
): ReadonlySet<number> {
  const ends = [...new Set([...blockEnds, ...breakpoints])].sort((a, b) => a - b);
  const windows = breakpoints.slice(-lookUps).map((offset) => {
    const after = ends.indexOf(offset) + 1;
    return ends.slice(Math.max(0, after - lookBackBlocks), after);
  });
  return new Set(windows.flat());
}

function isAscendingUpTo(last: number, offsets: readonly number[]): boolean {
  return offsets.every((offset, n) => Number.isInteger(offset) && offset > (offsets[n - 1] ?? 0) && offset <= last);
}
