import type { UsageLog } from "../../store/api/usage-log.js";
import type { Observers } from "../base/memstem-observer.js";
import type { MemstemParts } from "../base/memstem-parts.js";
import type { AlertRule } from "./alert-rules.js";
import { type AlertParts, AlertWatch } from "./usage-alerts.js";
import { UsageEvents } from "./usage-events.js";
import { UsageRecorder } from "./usage-recorder.js";

/** How usage is recorded. */
export interface UsageOptions {
  readonly rules: readonly AlertRule[];
  /** See {@link AlertParts.onAlert}. */
  readonly onAlert: AlertParts["onAlert"];
  /** Called with faults of the log. What could not be written is lost. */
  readonly onFault: (error: unknown) => void;
}

/** What records the usage of all tenants. */
export interface RecordedUsage {
  readonly log: UsageLog;
  readonly recorder: UsageRecorder;
  readonly events: UsageEvents;
  /** Null: there are no rules. */
  readonly alerts: AlertWatch | null;
  /** Whether prompts cost money. */
  readonly hasPrices: boolean;
  /** Notes that the service started, `version` memstem's own, and which of its defaults changed since it last did. */
  noteStart(version: string): Promise<void>;
  /** Writes what waits, and ends. The log stays open. */
  stop(): Promise<void>;
}

/** The mark of the defaults that prompts were composed by. */
const DEFAULTS_MARK = "defaults";

/** Begins to record. Null without a log. */
export function recordUsage(
  { usage: log, defaults, residency, now }: MemstemParts,
  observers: Observers,
  { rules, onAlert, onFault }: UsageOptions,
): RecordedUsage | null {
  if (log === undefined) return null;
  const usage = log;
  const recorder = new UsageRecorder({ log, now, costs: defaults.engine, residency, onFault });
  const events = new UsageEvents({ log, recorder, now, onFault });
  const alerts = rules.length === 0 ? null : new AlertWatch({ rules, log, recorder, now, onAlert, onFault });
  const remove = observers.add(recorder);
  alerts?.start();
  return {
    log,
    recorder,
    events,
    alerts,
    hasPrices: defaults.engine.cost.kind === "money",
    noteStart,
    async stop() {
      remove();
      events.stop();
      await alerts?.stop();
      await recorder.flush(true);
    },
  };

  async function noteStart(version: string): Promise<void> {
    const shared = { tenant: null, at: now(), model: null };
    await recorder.note({ ...shared, kind: "service_start", label: version });
    const { policy, retention, history, engineFamily, dedupe } = defaults;
    const set = Object.entries({ policy, retention, history, engine: engineFamily, dedupe });
    const named = set.flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${value}`]));
    const before = await usage.replaceMark(DEFAULTS_MARK, JSON.stringify(named));
    if (before === null) return;
    const known = new Set(JSON.parse(before) as string[]);
    const changed = named.filter((text) => !known.has(text));
    if (changed.length > 0) await recorder.note({ ...shared, kind: "policy_change", label: changed.join(", ") });
  }
}
