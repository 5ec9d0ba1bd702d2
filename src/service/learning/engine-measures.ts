import {
  type AnswerTime,
  answerPace,
  type EngineModel,
  type EngineReport,
  fitTimeLaw,
  KEPT_SAMPLES,
  LruMap,
  type MeanPrompt,
  type PromptWork,
  promptCost,
  type TimeLaw,
  type TurnId,
  type UserId,
} from "../../core/index.js";
import type { Store } from "../../store/store.js";

/** New samples between two fits of the law, at most. */
const MOST_BETWEEN_FITS = 8;
/** Milliseconds after which samples of other processes are looked for. */
const REFRESH_MS = 2_000;

/**
 * The engine's cost model: the configured one, until measured times to first token depend significantly on what the engine computed; then
 * the law that is fitted to them. A function of stored samples only: of this process's as soon as they are stored, of another's
 * {@link REFRESH_MS} later. So the next process plans by the same law. A model of prices is never replaced. How long answers to long prompts
 * take is this process's own measurement, and counts with a fitted law only.
 */
export class EngineLaw {
  #fitted: { readonly count: number; readonly law: TimeLaw | null } = { count: 0, law: null };
  #readAt = Number.NEGATIVE_INFINITY;
  #answers: readonly AnswerTime[] = [];
  #answersTaken = 0;
  /** Of its newest answers, on average. */
  #answerTokens = 0;
  private readonly configured: EngineModel;
  /** What a token of a prompt adds to a token of its answer. */
  #pace = 0;

  constructor(
    private readonly store: Store,
    /** Key of the engine's samples in the database. */
    private readonly engine: string,
    /** The configured model, by the name of the model that a prompt is for; all of one kind. */
    private readonly modelNamed: (model: string | null) => EngineModel,
    /** Milliseconds since the epoch. */
    private readonly now: () => number,
  ) {
    this.configured = modelNamed(null);
  }

  /** The model of prompts for this name (null: none), as {@link refresh} last read it. A fitted law is the same for all names. */
  modelFor(name: string | null): EngineModel {
    const { law } = this.#fitted;
    if (law === null) return this.modelNamed(name);
    return { ...this.configured, cost: law, perHeldTokenMs: this.#answerTokens * this.#pace };
  }

  /** The fitted law; null while the configured one is used. */
  async law(): Promise<TimeLaw | null> {
    if (this.configured.cost.kind === "time") await this.#read();
    return this.#fitted.law;
  }

  /** Reads the samples again, where that was a while ago. To be awaited before the model is used. */
  async refresh(): Promise<void> {
    if (this.configured.cost.kind !== "time" || Math.abs(this.now() - this.#readAt) < REFRESH_MS) return;
    await this.#read();
  }

  /** About how many milliseconds the engine takes to compute a prompt; by its tokens alone where prompts cost money. */
  timeOf({ computedTokens, promptTokens }: PromptWork): number {
    const { cost } = this.modelFor(null);
    if (cost.kind !== "time") return computedTokens;
    const law = { cost: { ...cost, fixedMs: 0 }, blockTokens: 1, minimumPrefixTokens: 0 };
    return promptCost(law, promptTokens, promptTokens - computedTokens);
  }

  /** Adds an answer as a sample of how long its tokens took. */
  takeAnswer(answer: AnswerTime): void {
    this.#answers = [...this.#answers.slice(1 - KEPT_SAMPLES), answer];
    this.#answersTaken++;
    if (fitsAt(this.#answersTaken) !== this.#answersTaken) return;
    this.#answerTokens = this.#answers.reduce((sum, { tokens }) => sum + tokens, 0) / this.#answers.length;
    if (this.#fitted.law !== null) this.#pace = answerPace(this.#answers, this.#fitted.law);
  }

  /** Adds a report with a time and both counts as a sample. @param mean what the engine computed in that time; null: this prompt */
  async take(
    of: { readonly scopeId: number; readonly turn: TurnId },
    { promptTokens, cachedTokens, ttftMs }: EngineReport,
    mean: MeanPrompt | null = null,
  ): Promise<void> {
    if (promptTokens === undefined || cachedTokens === undefined || ttftMs === undefined) return;
    if (cachedTokens > promptTokens || ttftMs <= 0) return;
    const uncachedTokens = Math.round(mean?.computedTokens ?? promptTokens - cachedTokens);
    const time = {
      uncachedTokens,
      cachedTokens: Math.max(0, Math.round(mean?.promptTokens ?? promptTokens) - uncachedTokens),
      ms: ttftMs / (mean?.count ?? 1),
    };
    await this.store.prompts.keepFirstTokenTime(this.engine, of.scopeId, of.turn, time);
    if (this.configured.cost.kind === "time") await this.#read();
  }

  async #read(): Promise<void> {
    this.#readAt = this.now();
    const measured = await this.store.prompts.countFirstTokenTimes(this.engine);
    const count = fitsAt(measured);
    if (count <= this.#fitted.count) return;
    const samples = await this.store.prompts.firstTokenTimes(this.engine, count, KEPT_SAMPLES);
    // A later call may have ended first.
    if (count <= this.#fitted.count) return;
    this.#fitted = { count, law: fitTimeLaw(samples) };
  }
}

/** Of so many samples, how many the newest fit has: it is made again with each, then with every second, fourth and eighth. */
function fitsAt(samples: number): number {
  const between = Math.min(MOST_BETWEEN_FITS, 2 ** Math.max(0, Math.floor(Math.log2(samples / MOST_BETWEEN_FITS))));
  return samples - (samples % between);
}

/** Whose prompts were counted, and for which model. */
export interface RatioKey {
  readonly userId: UserId;
  /** As its client names it; empty where it is not known. */
  readonly model: string;
}

/** Tokens of one prompt: by memprefix's counter, and as its engine reported. */
interface CountedPrompt {
  readonly estimated: number;
  readonly reported: number;
  /** When it was reported, in milliseconds since the epoch. */
  readonly at: number;
}

/** Most (user, model) pairs of one tenant. */
const MOST_KNOWN = 1_000;
/** Newest prompts of each that count. */
const KEPT_PROMPTS = 8;
/** A report expires: another model may be served under the same name. */
const KNOWN_FOR_MS = 60 * 60 * 1_000;
/** Prompts shorter than this share of a limit do not count for it: what a template adds once weighs too much in them. */
const SHORTEST_SHARE = 1 / 8;
/** Fewer prompts do not raise a limit: the next text's ratio may be another. */
const ENOUGH_TO_RAISE = 4;
/** A ratio beyond these is no tokenizer's. */
const [LEAST, MOST] = [0.5, 4];

/** How engines count a tenant's tokens, relative to memprefix. In memory, per user and model: wrong counts affect their own user only. */
export class TokenRatios {
  readonly #prompts = new LruMap<string, readonly CountedPrompt[]>(MOST_KNOWN);

  /** @param now milliseconds since the epoch */
  constructor(private readonly now: () => number) {}

  /** Takes the tokens of a prompt that an engine reported. */
  take(of: RatioKey, { estimated, reported }: { readonly estimated: number; readonly reported: number }): void {
    if (estimated <= 0 || reported <= 0) return;
    const key = keyOf(of);
    const counted = { estimated, reported, at: this.now() };
    this.#prompts.set(key, [...(this.#prompts.get(key) ?? []).slice(1 - KEPT_PROMPTS), counted]);
  }

  /** Largest ratio of the newest prompts of about `limit` tokens, because a limit holds for each. 1 where nothing is known. */
  ratioFor(of: RatioKey, limit: number): number {
    const counted = this.#newest(of).filter(({ estimated }) => estimated >= SHORTEST_SHARE * limit);
    if (counted.length === 0) return 1;
    // One more: a longer prompt's tokens may be rounded up where these were rounded down.
    const largest = counted.reduce((most, { estimated, reported }) => Math.max(most, (reported + 1) / estimated), 0);
    return Math.min(MOST, Math.max(counted.length < ENOUGH_TO_RAISE ? 1 : LEAST, largest));
  }

  /** The engine's tokens of one of memprefix's over the newest prompts. 1 where nothing is known. */
  meanOf(of: RatioKey): number {
    const counted = this.#newest(of);
    const sum = (tokens: (prompt: CountedPrompt) => number) => counted.reduce((all, each) => all + tokens(each), 0);
    const estimated = sum((prompt) => prompt.estimated);
    if (estimated === 0) return 1;
    return Math.min(MOST, Math.max(LEAST, sum((prompt) => prompt.reported) / estimated));
  }

  #newest(of: RatioKey): readonly CountedPrompt[] {
    const since = this.now() - KNOWN_FOR_MS;
    return (this.#prompts.get(keyOf(of)) ?? []).filter(({ at }) => at > since);
  }
}

function keyOf({ userId, model }: RatioKey): string {
  return JSON.stringify([userId, model]);
}
