import { z } from "zod";
import type { BlockChain, CachingEngine } from "../../core/index.js";
import { text } from "../../core/text/json.js";
import { apartBy } from "../../engines/kv-events/kv-events.js";
import type { TokenizedPrompt } from "../../engines/kv-events/observed-cache.js";
import { readCacheMetrics } from "../../engines/upstream/cache-metrics.js";
import { OptionalRoute } from "../../engines/upstream/optional-route.js";
import type { Upstream } from "../../engines/upstream/upstream.js";

/** Milliseconds between two readings, while prompts are composed. */
const INTERVAL_MS = 2_000;
const TIMEOUT_MS = 5_000;
/** Longer expositions are not read. */
const MOST_BYTES = 8 * 1024 * 1024;

export interface CacheReadingOptions {
  readonly cache: CachingEngine;
  readonly upstream: Upstream;
  readonly now: () => number;
  /** Milliseconds between two readings. Default 2,000. */
  readonly intervalMs?: number;
}

/** Reads the engine's cache metrics now, and again while prompts are composed; nothing waits for it. @returns stops it */
export function startCacheReadings({
  cache,
  upstream,
  now,
  intervalMs = INTERVAL_MS,
}: CacheReadingOptions): () => void {
  const route = new OptionalRoute(upstream, now);
  const ending = new AbortController();
  let promptsRead = -1;
  let isReading = false;
  const read = async () => {
    if (isReading || ending.signal.aborted || cache.prompts === promptsRead) return;
    isReading = true;
    const { prompts } = cache;
    try {
      const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const exposition = await route.read("/metrics", signal, { most: MOST_BYTES });
      if (exposition === null) return;
      cache.read(readCacheMetrics(exposition), now());
      promptsRead = prompts;
    } catch {
      // Too long, or broken off. An engine that cannot be reached is reported when a prompt is sent to it.
    } finally {
      isReading = false;
    }
  };
  void read();
  const timer = setInterval(() => void read(), intervalMs);
  timer.unref();
  return () => {
    clearInterval(timer);
    ending.abort();
  };
}

/** Milliseconds to tokenize a prompt. Nothing waits for it. */
const TOKENIZE_MS = 10_000;
/** The fields that determine a prompt's tokens. */
const TEMPLATE_FIELDS = ["model", "messages", "tools", "chat_template", "chat_template_kwargs"] as const;

const tokenized = z.object({ tokens: z.array(z.int().min(0)) });

export interface ExactExpectation extends TokenizedPrompt {
  /** By the engine's events so far, without what was computed of this prompt since it was sent. Null: unknown. */
  cachedTokens(): number | null;
}

/** What an engine that publishes events has cached of a prompt: exact to the block, in the engine's tokens. */
export class KvExpectations {
  readonly #route: OptionalRoute;

  constructor(
    private readonly cache: CachingEngine,
    upstream: Upstream,
    now: () => number,
  ) {
    this.#route = new OptionalRoute(upstream, now);
  }

  /** Call it before the prompt is sent, and await it after. Null: unknown. Never rejects. */
  async of(body: Readonly<Record<string, unknown>>): Promise<ExactExpectation | null> {
    const { residents } = this.cache;
    if (residents.length === 0 || !Array.isArray(body["messages"])) return null;
    const sentAt = residents.map(({ newest }) => newest);
    try {
      const fields = Object.fromEntries(TEMPLATE_FIELDS.flatMap((name) => (name in body ? [[name, body[name]]] : [])));
      const prompt = JSON.stringify({ ...fields, add_generation_prompt: true });
      const of = { body: prompt, model: text(body["model"]) };
      const answer = await this.#route.read("/tokenize", AbortSignal.timeout(TOKENIZE_MS), of);
      if (answer === null) return null;
      const { tokens } = tokenized.parse(JSON.parse(answer));
      const salt = body["cache_salt"];
      return this.#ofTokens(tokens, typeof salt === "string" ? apartBy([salt]) : null, sentAt);
    } catch {
      // An engine that cannot be reached, or cannot tokenize this prompt, reports that when the prompt is sent.
      return null;
    }
  }

  #ofTokens(ids: readonly number[], apart: string | null, sentAt: readonly number[]): ExactExpectation {
    const { cache } = this;
    // Computed late: a newly started engine reports its block length first with this prompt's own events.
    let known: readonly BlockChain[] | null = null;
    // Released early: the tokens of many long prompts take much memory.
    let unnamed: readonly number[] | null = ids;
    const tokens = ids.length;
    return {
      tokens,
      get chains() {
        if (unnamed !== null) known = cache.chainsOf(unnamed, apart);
        if (known !== null) unnamed = null;
        return known ?? [];
      },
      cachedTokens() {
        const resident = cache.residentTokens(this.chains, sentAt);
        // The last token is always computed, and with it its block.
        const most = tokens - 1 - ((tokens - 1) % (cache.blockTokens ?? 1));
        return resident === null ? null : Math.min(resident, most);
      },
    };
  }
}
