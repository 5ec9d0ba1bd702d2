import {
  type AnswerTime,
  ENGINE_MODELS,
  type EngineModel,
  fitAnswerPace,
  fitTimeLaw,
  KEPT_SAMPLES,
  nearestTimeLaw,
  type TimeLaw,
} from "../../core/index.js";
import type { EngineReport, Store } from "../../store/api/store.js";

/** New samples between two fits of the law. */
const TIMES_BETWEEN_FITS = 8;
/** Milliseconds after which samples of other processes are looked for. */
const REFRESH_MS = 2_000;

/** Laws that an engine's may be like: a server's on a GPU, and one on a CPU. */
const KNOWN_LAWS = [ENGINE_MODELS.gpu, ENGINE_MODELS.cpu].flatMap(({ cost }) => (cost.kind === "time" ? [cost] : []));

/**
 * The engine's cost model: the configured one, until some times to first token show which known law it is like, and enough of them were
 * measured to fit a time law. A function of stored
 * samples only: of this process's as soon as they are stored, of another's {@link REFRESH_MS} later. So the next process plans by the same
 * law. A model of prices is never replaced. How long answers to long prompts take is this process's own measurement.
 */
export class EngineLaw {
  #fitted: { readonly count: number; readonly law: TimeLaw | null } = { count: 0, law: null };
  /** The fitted law, or until there is one the nearest; null: the configured one. */
  #measured: TimeLaw | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  #answers: readonly AnswerTime[] = [];
  #answersTaken = 0;
  #perHeldTokenMs = 0;

  constructor(
    private readonly store: Store,
    /** Key of the engine's samples in the database. */
    private readonly engine: string,
    private readonly configured: EngineModel,
    /** Milliseconds since the epoch. */
    private readonly now: () => number,
  ) {}

  /** The model, as it was last read from the store: see {@link refresh}. */
  get model(): EngineModel {
    if (this.configured.cost.kind !== "time") return this.configured;
    return { ...this.configured, cost: this.#measured ?? this.configured.cost, perHeldTokenMs: this.#perHeldTokenMs };
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

  /** Adds an answer as a sample of how long its tokens took. */
  takeAnswer(answer: AnswerTime): void {
    if (this.configured.cost.kind !== "time") return;
    this.#answers = [...this.#answers.slice(1 - KEPT_SAMPLES), answer];
    if (++this.#answersTaken % TIMES_BETWEEN_FITS !== 0) return;
    const mean = this.#answers.reduce((sum, { tokens }) => sum + tokens, 0) / this.#answers.length;
    this.#perHeldTokenMs = mean * (fitAnswerPace(this.#answers) ?? 0);
  }

  /** Adds a report as a sample, where it has a time to first token and both token counts. */
  async take({ promptTokens, cachedTokens, ttftMs }: EngineReport): Promise<void> {
    if (promptTokens === undefined || cachedTokens === undefined || ttftMs === undefined) return;
    if (cachedTokens > promptTokens || ttftMs <= 0) return;
    const time = { uncachedTokens: promptTokens - cachedTokens, cachedTokens, ms: ttftMs };
    await this.store.keepFirstTokenTime(this.engine, time, KEPT_SAMPLES + TIMES_BETWEEN_FITS);
    if (this.configured.cost.kind === "time") await this.#read();
  }

  async #read(): Promise<void> {
    this.#readAt = this.now();
    const measured = await this.store.countFirstTokenTimes(this.engine);
    const count = measured - (measured % TIMES_BETWEEN_FITS);
    if (count <= this.#fitted.count) return;
    const samples = await this.store.firstTokenTimes(this.engine, count, KEPT_SAMPLES);
    // A later call may have ended first.
    if (count <= this.#fitted.count) return;
    const law = fitTimeLaw(samples);
    const configured = this.configured.cost.kind === "time" ? [this.configured.cost] : [];
    this.#fitted = { count, law };
    this.#measured = law ?? nearestTimeLaw(samples, [...configured, ...KNOWN_LAWS]);
  }
}
