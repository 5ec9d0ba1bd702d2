import type { AnswerTime } from "./time-law-fit.js";

/** Prompts that are known; an engine computes fewer at a time. */
const MOST_PROMPTS = 1_024;
/** Share of the wait within which first tokens come from one step of the engine. */
const ONE_STEP = 0.01;
/** After so many uncertain waits in a row, the next one is a sample. */
const MOST_UNCERTAIN = 8;
/** Minimum share of an answer's time that was its own. */
const LEAST_OWN = 0.6;

export interface PromptWork {
  /** Estimated. */
  readonly computedTokens: number;
  readonly promptTokens: number;
}

export interface MeanPrompt extends PromptWork {
  /** Number of such prompts; partly computed ones count in part. */
  readonly count: number;
}

/** Estimated time to compute a prompt, above 0. */
export type WorkTime = (work: PromptWork) => number;

/** In milliseconds of one clock. */
export interface PromptWait {
  readonly sentAt: number;
  readonly firstAt: number;
}

interface Worked extends PromptWait {
  computedTokens: number;
  promptTokens: number;
  /** When its answer ended; null: it goes on. */
  endedAt: number | null;
}

/**
 * What one engine computes for all its users (docs/internals/algorithms.md, "What a prompt costs"). A client waits for everything that the engine
 * computes meanwhile, so the speed model is fitted to that, not to the client's own prompt.
 */
export class EngineWork {
  /** By request, in the order of their first tokens. */
  readonly #prompts = new Map<string, Worked>();
  /** Uncertain waits since the last sample. */
  #uncertain = 0;

  /** Records a prompt's first token. A known prompt stays as it is. */
  begins(requestId: string, { sentAt, firstAt }: PromptWait, work: PromptWork): void {
    if (this.#prompts.has(requestId)) return;
    this.#prompts.set(requestId, { sentAt, firstAt, endedAt: null, ...atLeastOne(work) });
    const [oldest] = this.#prompts.keys();
    if (oldest !== undefined && this.#prompts.size > MOST_PROMPTS) this.#prompts.delete(oldest);
  }

  /** Corrects a prompt by the engine's own counts. */
  counted(requestId: string, work: PromptWork): void {
    const prompt = this.#prompts.get(requestId);
    if (prompt !== undefined) Object.assign(prompt, atLeastOne(work));
  }

  /** Records an answer's last token, or that its client left. */
  ends(requestId: string, at: number): void {
    const prompt = this.#prompts.get(requestId);
    if (prompt !== undefined) prompt.endedAt ??= at;
  }

  /**
   * Whether {@link meanPrompt} has all that the engine computed while a prompt waited. Call it once per prompt. False if another prompt, which may
   * be partly computed, still waits; but in an endless queue {@link MOST_UNCERTAIN} limits how often.
   */
  isSample(requestId: string): boolean {
    const own = this.#prompts.get(requestId);
    if (own === undefined) return true;
    let isCertain = true;
    for (const { sentAt } of this.#othersIn(requestId, endOfStep(own), Number.POSITIVE_INFINITY))
      isCertain &&= sentAt >= own.firstAt;
    this.#uncertain = isCertain ? 0 : this.#uncertain + 1;
    return isCertain || this.#uncertain > MOST_UNCERTAIN;
  }

  /**
   * What the engine computed while a prompt waited for its first token, that prompt included, as equal prompts: a law that is linear in tokens and
   * pairs gives their mean the mean time. Null for an unknown prompt.
   *
   * @param timeOf only decides how much of a prompt was computed before this one was sent
   */
  meanPrompt(requestId: string, timeOf: WorkTime): MeanPrompt | null {
    const own = this.#prompts.get(requestId);
    if (own === undefined) return null;
    let [count, computed, pairs] = [0, 0, 0];
    const add = ({ computedTokens, promptTokens }: PromptWork, share: number) => {
      count += share;
      computed += share * computedTokens;
      pairs += share * computedTokens * (promptTokens - computedTokens / 2);
    };
    add(own, 1);
    for (const other of this.#othersIn(requestId, own.sentAt, endOfStep(own))) {
      const longest = Math.min(timeOf(other), other.firstAt - other.sentAt);
      add(other, Math.min(1, (other.firstAt - own.sentAt) / longest));
    }
    const computedTokens = computed / count;
    return { count, computedTokens, promptTokens: pairs / computed + computedTokens / 2 };
  }

  /**
   * An answer without what the engine did for others: less the time of prompts computed meanwhile. Answers given meanwhile count as a longer prompt,
   * since each step of the engine adds a token to all of them. Unchanged for an unknown prompt; null if little of its time is left.
   *
   * @param timeOf milliseconds to compute a prompt
   */
  ownAnswer(requestId: string, answer: AnswerTime, timeOf: WorkTime): AnswerTime | null {
    const own = this.#prompts.get(requestId);
    const { ms } = answer;
    if (own === undefined || !(ms > 0)) return answer;
    const [from, to] = [own.firstAt, own.firstAt + ms];
    const left = ms - this.#othersTimeIn(requestId, from, to, timeOf);
    if (left < LEAST_OWN * ms) return null;
    let { promptTokens } = answer;
    for (const [id, other] of this.#prompts) {
      const together = Math.min(to, other.endedAt ?? to) - Math.max(from, other.firstAt);
      if (id !== requestId && together > 0) promptTokens += (other.promptTokens * together) / ms;
    }
    return { ...answer, promptTokens, ms: left };
  }

  #othersTimeIn(requestId: string, from: number, to: number, timeOf: WorkTime): number {
    let sum = 0;
    for (const other of this.#othersIn(requestId, from, to)) sum += Math.min(timeOf(other), other.firstAt - from);
    return sum;
  }

  /** The other prompts whose first tokens came between two times: they are computed just before. */
  *#othersIn(requestId: string, from: number, to: number): Iterable<Worked> {
    for (const [id, other] of this.#prompts)
      if (id !== requestId && other.firstAt > from && other.firstAt <= to) yield other;
  }
}

function endOfStep({ sentAt, firstAt }: PromptWait): number {
  return firstAt + ONE_STEP * (firstAt - sentAt);
}

/** An engine computes at least a prompt's last token. */
function atLeastOne({ computedTokens, promptTokens }: PromptWork): PromptWork {
  return { computedTokens: Math.max(1, computedTokens), promptTokens: Math.max(1, promptTokens) };
}
