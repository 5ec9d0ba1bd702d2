import { LruMap } from "../text/collections.js";

/** Prompts that are known; an engine computes fewer at a time. */
const MOST_PROMPTS = 1_024;
/** Share of the wait within which first tokens come from one step of the engine. */
const ONE_STEP = 0.01;
/** After so many uncertain waits in a row, the next one is a sample. */
const MOST_UNCERTAIN = 8;

export interface PromptWork {
  /** Estimated. */
  readonly computedTokens: number;
  readonly promptTokens: number;
}

export interface MeanPrompt extends PromptWork {
  /** Number of such prompts; partly computed ones count in part. */
  readonly count: number;
}

/** In milliseconds of one clock. */
export interface PromptWait {
  readonly sentAt: number;
  readonly firstAt: number;
}

type Worked = PromptWait & PromptWork;

/** What one engine computes for all its users, since a client waits for all of it (docs/internals/algorithms.md, "What a prompt costs"). */
export class EngineWork {
  readonly #prompts = new LruMap<string, Worked>(MOST_PROMPTS);
  /** Uncertain waits since the last sample. */
  #uncertain = 0;

  /** Records a prompt's first token. A known prompt stays as it is. */
  begins(requestId: string, wait: PromptWait, work: PromptWork): void {
    if (!this.#prompts.has(requestId)) this.#prompts.set(requestId, { ...wait, ...atLeastOne(work) });
  }

  /** Corrects a prompt by the engine's own counts. */
  counted(requestId: string, work: PromptWork): void {
    const prompt = this.#prompts.peek(requestId);
    if (prompt !== undefined) this.#prompts.set(requestId, { ...prompt, ...atLeastOne(work) });
  }

  /** Whether no other prompt was waiting, perhaps partly computed; else only now and then ({@link MOST_UNCERTAIN}). Call it once per prompt. */
  isSample(requestId: string): boolean {
    const own = this.#prompts.peek(requestId);
    if (own === undefined) return true;
    const isCertain = this.#othersIn(own, endOfStep(own)).every(({ sentAt }) => sentAt >= own.firstAt);
    this.#uncertain = isCertain ? 0 : this.#uncertain + 1;
    return isCertain || this.#uncertain > MOST_UNCERTAIN;
  }

  /**
   * What the engine computed while a prompt waited for its first token, that prompt included, as equal prompts: a law that is linear in tokens and
   * pairs gives their mean the mean time. Null for an unknown prompt.
   *
   * @param timeOf estimated time of a prompt, above 0; only decides how much of one was computed before this one was sent
   */
  meanPrompt(requestId: string, timeOf: (work: PromptWork) => number): MeanPrompt | null {
    const own = this.#prompts.peek(requestId);
    if (own === undefined) return null;
    let [count, computed, pairs] = [0, 0, 0];
    for (const prompt of [own, ...this.#othersIn(own, own.sentAt, endOfStep(own))]) {
      const { computedTokens, promptTokens, sentAt, firstAt } = prompt;
      // The prompt itself is computed as a whole.
      const longest = prompt === own ? 0 : Math.min(timeOf(prompt), firstAt - sentAt);
      const part = Math.min(1, (firstAt - own.sentAt) / longest);
      count += part;
      computed += part * computedTokens;
      pairs += part * computedTokens * (promptTokens - computedTokens / 2);
    }
    const computedTokens = computed / count;
    return { count, computedTokens, promptTokens: pairs / computed + computedTokens / 2 };
  }

  /** The other prompts whose first tokens came between two times: they are computed just before. */
  #othersIn(own: Worked, from: number, to = Number.POSITIVE_INFINITY): readonly Worked[] {
    return [...this.#prompts.values()].filter((other) => other !== own && other.firstAt > from && other.firstAt <= to);
  }
}

function endOfStep({ sentAt, firstAt }: PromptWait): number {
  return firstAt + ONE_STEP * (firstAt - sentAt);
}

/** An engine computes at least a prompt's last token. */
function atLeastOne({ computedTokens, promptTokens }: PromptWork): PromptWork {
  return { computedTokens: Math.max(1, computedTokens), promptTokens: Math.max(1, promptTokens) };
}
