import type { AnswerTime } from "./time-law-fit.js";

/** Prompts that are known; an engine computes fewer at a time. */
const MOST_PROMPTS = 1_024;
/** Prompts that an engine computes in one step have their first tokens at one time; they come as much apart as this share of the wait. */
const ONE_STEP = 0.01;
/** Prompts in a row whose waits are no samples, at most. */
const MOST_UNCERTAIN = 8;
/** Less of an answer's time than this share says nothing of the answer: the rest went into others' prompts. */
const LEAST_OWN = 0.6;

/** What an engine has to do for a prompt. */
export interface PromptWork {
  /** Tokens that it computes, about. */
  readonly computedTokens: number;
  /** Tokens of the whole prompt, over which its answer attends. */
  readonly promptTokens: number;
}

/** Prompts of the same work. */
export interface MeanPrompt extends PromptWork {
  /** How many, with parts of those that were computed in part. */
  readonly count: number;
}

/** About how long an engine computes a prompt, above 0. */
export type WorkTime = (work: PromptWork) => number;

/** From when a prompt was sent to its answer's first token, in milliseconds of one clock. */
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
 * What one engine works on, for all its users (docs/internals/algorithms.md, "What a prompt costs"). It computes several prompts and gives several
 * answers at a time, and a client waits for all of them. So a law of the engine's is fitted to what it computed in that time, not to the prompt that
 * was waited for: a queue says what others sent.
 */
export class EngineWork {
  /** By request, in the order of their first tokens. */
  readonly #prompts = new Map<string, Worked>();
  /** Newest prompts whose waits were no samples. */
  #uncertain = 0;

  /** A prompt's first token came. Does nothing where it is known. */
  begins(requestId: string, { sentAt, firstAt }: PromptWait, work: PromptWork): void {
    if (this.#prompts.has(requestId)) return;
    this.#prompts.set(requestId, { sentAt, firstAt, endedAt: null, ...atLeastOne(work) });
    const [oldest] = this.#prompts.keys();
    if (oldest !== undefined && this.#prompts.size > MOST_PROMPTS) this.#prompts.delete(oldest);
  }

  /** The engine's own counts of a prompt. */
  counted(requestId: string, work: PromptWork): void {
    const prompt = this.#prompts.get(requestId);
    if (prompt !== undefined) Object.assign(prompt, atLeastOne(work));
  }

  /** An answer's last token came, or its client left. */
  ends(requestId: string, at: number): void {
    const prompt = this.#prompts.get(requestId);
    if (prompt !== undefined) prompt.endedAt ??= at;
  }

  /**
   * Whether {@link meanPrompt} has all that the engine computed while a prompt waited: not where another one still waited when its first token
   * came, of which a part may be computed by then. In a queue that never ends it has nearly all: so each is a sample after some that were none. To
   * be asked once for each prompt.
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
   * What the engine computed while a prompt waited for its first token, that prompt included, as so many prompts of one size: a law that is
   * linear in tokens and pairs has it that each took as long as their mean, whatever that law is. Null where nothing is known of the prompt.
   *
   * @param timeOf says how much of a prompt was computed before this one was sent, and nothing else
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
   * An answer without what the engine did for others: less the time of prompts that were computed meanwhile, and after a prompt as long as those
   * of all answers that were given meanwhile, on average, as at each of its tokens the engine computes one of theirs, too. The answer as it is
   * where nothing is known of it; null where little of its time is left.
   *
   * @param timeOf milliseconds that the engine takes to compute a prompt
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

  /** For how long other prompts were computed between two times. */
  #othersTimeIn(requestId: string, from: number, to: number, timeOf: WorkTime): number {
    let sum = 0;
    for (const other of this.#othersIn(requestId, from, to)) sum += Math.min(timeOf(other), other.firstAt - from);
    return sum;
  }

  /**
   * The other prompts that were computed between two times: a prompt is computed just before its first token. Of those whose first token came
   * later nothing is known yet.
   */
  *#othersIn(requestId: string, from: number, to: number): Iterable<Worked> {
    for (const [id, other] of this.#prompts)
      if (id !== requestId && other.firstAt > from && other.firstAt <= to) yield other;
  }
}

/** Until when the first tokens come of what was computed in one step with a prompt. */
function endOfStep({ sentAt, firstAt }: PromptWait): number {
  return firstAt + ONE_STEP * (firstAt - sentAt);
}

/** An engine computes at least a prompt's last token. */
function atLeastOne({ computedTokens, promptTokens }: PromptWork): PromptWork {
  return { computedTokens: Math.max(1, computedTokens), promptTokens: Math.max(1, promptTokens) };
}
