/** A prompt as a provider's cache sees it. Offsets count tokens from its start, and ascend. */
export interface MarkedPrompt {
  readonly tokens: readonly number[];
  readonly breakpoints: readonly number[];
  /** Ends of content blocks. */
  readonly blockEnds: readonly number[];
}

interface Rules {
  readonly maxBreakpoints: number;
  /** How many of a prompt's breakpoints are looked up, the last ones … */
  readonly lookUps: number;
  /** … and how many block ends each tries backwards, itself the first. */
  readonly lookBackBlocks: number;
}

/**
 * Anthropic: "cache writes happen only at your breakpoint"; a read tries "at most 20 positions per breakpoint, counting the breakpoint itself as
 * the first" (Claude's prompt caching guide). OpenAI GPT-5.6 and later with `mode: "explicit"`: "considers up to the latest 80 breakpoints",
 * each exactly (API reference, `prompt_cache_options`). Both write the last four.
 */
const RULES = {
  anthropic: { maxBreakpoints: 4, lookUps: 4, lookBackBlocks: 20 },
  "openai-breakpoints": { maxBreakpoints: Number.POSITIVE_INFINITY, lookUps: 80, lookBackBlocks: 1 },
} as const satisfies Readonly<Record<string, Rules>>;
const WRITES = 4;

/** A cache of prefixes that end at breakpoints, of any length: a list that is looked through for every prompt. */
export class BreakpointCache {
  readonly #written: (readonly number[])[] = [];
  readonly #rules: Rules;

  constructor(provider: keyof typeof RULES) {
    this.#rules = RULES[provider];
  }

  serve({ tokens, breakpoints, blockEnds }: MarkedPrompt): number {
    const { maxBreakpoints, lookUps, lookBackBlocks } = this.#rules;
    if (breakpoints.length > maxBreakpoints) throw new Error(`at most ${maxBreakpoints} breakpoints`);
    const ends = new Set([...blockEnds, ...breakpoints]);
    const isReached = (offset: number) =>
      breakpoints.slice(-lookUps).some((breakpoint) => {
        const between = [...ends].filter((end) => end > offset && end <= breakpoint);
        return offset <= breakpoint && between.length < lookBackBlocks;
      });
    const isPrefix = (prefix: readonly number[]) => prefix.every((token, at) => tokens[at] === token);
    const hits = this.#written.filter(
      (prefix) => ends.has(prefix.length) && isReached(prefix.length) && isPrefix(prefix),
    );
    for (const offset of breakpoints.slice(-WRITES)) this.#written.push(tokens.slice(0, offset));
    return Math.max(0, ...hits.map(({ length }) => length));
  }
}
