import { z } from "zod";
import { timeAt } from "../../core/index.js";
import type { TimedSums, UsageLog, WindowSums } from "../../store/api/usage-log.js";
import { DEFAULT_TENANT } from "../base/tenant.js";
import { engine, modelName } from "../fields/fields.js";
import type { UsageRecorder } from "./usage-recorder.js";

/** What a rule watches. */
const ALERT_MEASURES = ["cached_share", "missed_tokens", "first_token_p95_ms"] as const;

const share = z.number().gt(0).lt(1);

const rule = z
  .strictObject({
    name: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, "must be 1 to 64 letters, digits, dots, dashes or underscores"),
    measure: z.enum(ALERT_MEASURES),
    tenant: z.string().min(1).default(DEFAULT_TENANT.name),
    model: modelName.optional(),
    engine: engine.optional(),
    within_minutes: z.int().min(15).max(720).multipleOf(15, "must be a multiple of 15").default(60),
    min_prompts: z.int().min(1).max(1_000_000).default(20),
    falls_by: share.optional(),
    rises_by: z.number().gt(0).max(1_000).optional(),
    below: z.number().min(0).optional(),
    above: z.number().min(0).optional(),
  })
  .refine(
    (given) =>
      [given.falls_by, given.rises_by, given.below, given.above].filter((limit) => limit !== undefined).length === 1,
    "must have exactly one of falls_by, rises_by, below and above",
  );

/** The file of `MEMPREFIX_ALERTS`. */
export const alertFile = z.strictObject({
  webhook: z.url({ protocol: /^https?$/, error: "must be an http or https address" }).optional(),
  rules: z
    .array(rule)
    .max(100)
    .refine((rules) => new Set(rules.map(({ name }) => name)).size === rules.length, "must have names that differ"),
});

/** When an alert fires. */
export type AlertRule = z.output<typeof rule>;
/** The rules, and where their alerts are posted. */
export type AlertFile = z.output<typeof alertFile>;

/** Whether a rule's condition holds; null: too little is known. `reference`: the same measure in the window before. */
function isMet(rule: AlertRule, value: number | null, reference: number | null): boolean | null {
  if (value === null) return null;
  if (rule.below !== undefined) return value < rule.below;
  if (rule.above !== undefined) return value > rule.above;
  if (reference === null) return null;
  if (rule.falls_by !== undefined) return value <= reference * (1 - rule.falls_by);
  return value >= reference * (1 + (rule.rises_by ?? 0)) && reference > 0;
}

/** Milliseconds between two evaluations. */
const EVERY_MS = 60_000;
const MINUTE_MS = 60_000;

/** A rule, as it was last evaluated. */
export interface AlertState {
  readonly rule: AlertRule;
  readonly isFiring: boolean;
  /** Since when, in milliseconds since the epoch; null: it is not. */
  readonly since: number | null;
  /** In the rule's last window; null: too few prompts. */
  readonly value: number | null;
  /** In the window before it; null: too few prompts, or nothing is compared. */
  readonly reference: number | null;
}

/** An alert that began or ended. */
export interface Alert extends AlertState {
  readonly at: number;
}

/** What alerts need. */
export interface AlertParts {
  readonly rules: readonly AlertRule[];
  readonly log: UsageLog;
  readonly recorder: UsageRecorder;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /**
   * Called when an alert begins or ends, in one of the processes on the log. False: it could not be sent, and another is to; what was
   * tried in vain counts as sent.
   */
  readonly onAlert: (alert: Alert) => Promise<boolean>;
  readonly onFault: (error: unknown) => void;
}

/** Evaluates the rules every minute, as every process on the log does; what they find is theirs together, and one of them sends it. */
export class AlertWatch {
  readonly #states: AlertState[];
  readonly #tellings = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | null = null;
  #evaluating: Promise<void> = Promise.resolve();

  constructor(private readonly parts: AlertParts) {
    this.#states = parts.rules.map((rule) => ({ rule, isFiring: false, since: null, value: null, reference: null }));
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.evaluate(), EVERY_MS).unref();
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#evaluating;
    await Promise.all(this.#tellings);
  }

  /** Of all tenants. */
  get states(): readonly AlertState[] {
    return this.#states;
  }

  statesOf(tenant: string): readonly AlertState[] {
    return this.#states.filter(({ rule }) => rule.tenant === tenant);
  }

  /** Evaluates every rule now. */
  evaluate(): Promise<void> {
    this.#evaluating = this.#evaluating.then(async () => {
      for (const [at, state] of this.#states.entries())
        await this.#evaluate(state).then((next) => {
          this.#states[at] = next;
        }, this.parts.onFault);
    });
    return this.#evaluating;
  }

  async #evaluate(state: AlertState): Promise<AlertState> {
    const { log, recorder, now } = this.parts;
    const { rule } = state;
    await recorder.flush();
    const { tenant, model, engine } = rule;
    const summary = await log.summary({ tenant, window: "day", now: now(), model, engine });
    const value = measured(rule, summary, 0);
    const reference = measured(rule, summary, 1);
    // Where too little is known, nothing changes: an alert does not end because no requests come any more.
    const judged = { rule: JSON.stringify(rule), isMet: isMet(rule, value, reference), now: now() };
    const { isFiring, changedAt, claim } = await log.claimAlert(judged);
    const next = { rule, isFiring, since: isFiring ? changedAt : null, value, reference };
    if (claim !== null) await this.#tell({ ...next, at: changedAt ?? judged.now }, judged.rule, claim);
    return next;
  }

  /** Resolves once it is noted; sending it may take longer. */
  async #tell(alert: Alert, key: string, claim: number): Promise<void> {
    const { log, recorder, onAlert, onFault } = this.parts;
    const { rule, isFiring, at } = alert;
    const label = `${rule.name}${isFiring ? "" : " has ended"}`;
    await recorder.note({ tenant: rule.tenant, at, kind: "alert", label, model: rule.model ?? null });
    const telling = onAlert(alert)
      .then((isTold) => (isTold ? log.settleAlert(key, claim) : undefined))
      .catch(onFault)
      .finally(() => this.#tellings.delete(telling));
    this.#tellings.add(telling);
  }
}

/** A rule's measure in its last window (`back` 0) or the one before it (1), in whole steps; null: too few prompts. */
function measured(rule: AlertRule, { points, to, stepMs }: WindowSums, back: 0 | 1): number | null {
  const length = rule.within_minutes * MINUTE_MS;
  const end = to - back * length;
  const within: TimedSums[] = [];
  for (let at = end - length; at < end; at += stepMs) {
    const point = points.get(at);
    if (point !== undefined) within.push(point);
  }
  const sum = (of: (sums: TimedSums["sums"]) => number) => within.reduce((all, { sums }) => all + of(sums), 0);
  switch (rule.measure) {
    case "cached_share": {
      const total = sum(({ sharedReportedPromptTokens }) => sharedReportedPromptTokens);
      if (total === 0 || sum(({ reportedPrompts }) => reportedPrompts) < rule.min_prompts) return null;
      return sum(({ sharedReportedCachedTokens }) => sharedReportedCachedTokens) / total;
    }
    case "missed_tokens":
      return sum(({ prompts }) => prompts) < rule.min_prompts ? null : sum(({ missedTokens }) => missedTokens);
    case "first_token_p95_ms": {
      if (sum(({ timedPrompts }) => timedPrompts) < rule.min_prompts) return null;
      const times = new Map<number, number>();
      for (const point of within)
        for (const [bin, prompts] of point.times) times.set(bin, (times.get(bin) ?? 0) + prompts);
      return timeAt(times, 0.95);
    }
  }
}
