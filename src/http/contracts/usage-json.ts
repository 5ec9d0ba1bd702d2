import type { z } from "zod";
import type { ConversationTurns } from "../../service/usage/tenant-usage.js";
import type { AlertState } from "../../service/usage/usage-alerts.js";
import type {
  ConversationReuse,
  KeptNote,
  KeptUsage,
  ReuseSums,
  TimedSums,
  UsagePage,
  UserReuse,
  WindowMisses,
  WindowSums,
} from "../../service/usage/usage-figures.js";
import {
  causesOf,
  missedTokens,
  timeAt,
  USAGE_CAUSES,
  type UsageCause,
  uncachedTokens,
} from "../../service/usage/usage-figures.js";
import { causeTexts } from "./usage-causes.js";
import type * as wire from "./usage-contract.js";

/*
 * The JSON of the usage's answers.
 */

type Sums = z.input<typeof wire.usageSums>;
type Row = z.input<typeof wire.usageRow>;
type EngineField = Row["engine"];

/** Whether money means anything: prompts cost money, not time. */
export interface Priced {
  readonly hasPrices: boolean;
}

/** The JSON of one prompt. */
export function writeUsageRow(row: KeptUsage): Row {
  const { usage, epoch } = row;
  const missed = missedTokens(usage);
  const uncached = uncachedTokens(usage);
  return {
    id: row.number,
    at: row.at,
    request_id: row.requestId,
    user_id: row.userId,
    agent_id: row.agentId,
    conversation_id: row.conversationId,
    model: row.model,
    engine: row.engine as EngineField,
    layout: row.layout,
    policy: row.policy,
    retention: row.retention,
    epoch: epoch && { began: epoch.began, prompts: epoch.prompts },
    prompt_tokens: usage.promptTokens,
    expected_cached_tokens: usage.expectedTokens,
    carried_tokens: usage.carriedTokens,
    new_tokens: Math.max(0, usage.promptTokens - usage.expectedTokens - (usage.planned?.tokens ?? 0)),
    missed_tokens: missed,
    reported_prompt_tokens: usage.report?.promptTokens ?? null,
    reported_cached_tokens: usage.report?.cachedTokens ?? null,
    uncached_tokens: uncached,
    first_token_ms: usage.firstTokenMs,
    causes: causesOf(usage).map(({ cause, tokens }) => ({ cause, tokens })),
    saved_money: row.savedMoney,
  };
}

/** The JSON of `GET /usage/summary`. */
export function writeUsageSummary(
  window: z.input<typeof wire.usageSummaryResult>["window"],
  { from, to, stepMs, total, points, groups, notes }: WindowSums,
  priced: Priced,
): z.input<typeof wire.usageSummaryResult> {
  const steps = Array.from({ length: Math.round((to - from) / stepMs) }, (_, step) => from + step * stepMs);
  const by = <K extends "model" | "engine" | "layout">(key: K) =>
    merged(groups.map(({ group, sums, times }) => ({ name: group[key], sums, times }))).map(({ name, of }) => ({
      name,
      sums: writeSums(of, priced),
    }));
  return {
    window,
    from,
    to,
    step_ms: stepMs,
    has_prices: priced.hasPrices,
    total: writeSums(total, priced),
    points: steps.map((at) => ({ at, ...writeSums(points.get(at) ?? null, priced) })),
    by_model: by("model").map(({ name, sums }) => ({ model: name, ...sums })),
    by_engine: by("engine").map(({ name, sums }) => ({ engine: name as EngineField, ...sums })),
    by_layout: by("layout").map(({ name, sums }) => ({ layout: name as Row["layout"], ...sums })),
    notes: notes.map(writeUsageNote),
  };
}

/** The JSON of a note. */
export function writeUsageNote({ number: id, at, kind, label, model }: KeptNote): z.input<typeof wire.usageNote> {
  return { id, at, kind, label, model };
}

/** The JSON of `GET /usage/requests`. */
export function writeUsageRequests({ rows, next }: UsagePage): z.input<typeof wire.usageRequestsResult> {
  return { requests: rows.map(writeUsageRow), next: writeCursor(next) };
}

/** The JSON of `GET /usage/misses`: every cause there is. */
export function writeUsageMisses(
  window: z.input<typeof wire.usageMissesResult>["window"],
  { from, to, causes }: WindowMisses,
  { hasPrices }: Priced,
): z.input<typeof wire.usageMissesResult> {
  const all = causes.reduce((sum, { tokens }) => sum + tokens, 0);
  const money = (of: number) => (hasPrices ? rounded(of) : null);
  const found = new Map(causes.map((cause) => [cause.cause, cause]));
  const none = { prompts: 0, tokens: 0, money: 0 };
  return {
    window,
    from,
    to,
    has_prices: hasPrices,
    missed_tokens: all,
    missed_money: money(causes.reduce((sum, cause) => sum + cause.money, 0)),
    causes: USAGE_CAUSES.map((cause) => {
      const { prompts, tokens, money: cost } = found.get(cause) ?? none;
      const share = all === 0 ? 0 : tokens / all;
      return { cause, ...causeTexts(cause), prompts, tokens, share, money: money(cost), is_apart: isApart(cause) };
    }).sort((a, b) => b.tokens - a.tokens),
  };
}

/** The JSON of `GET /usage/users`. */
export function writeUsageUsers(users: readonly UserReuse[], priced: Priced): z.input<typeof wire.usageUsersResult> {
  return {
    users: users.map((user) => ({
      user_id: user.userId,
      agent_id: user.agentId,
      conversations: user.conversations,
      ...writeReuse(user, priced),
    })),
  };
}

/** The JSON of `GET /usage/conversations`. */
export function writeUsageConversations(
  conversations: readonly ConversationReuse[],
  priced: Priced,
): z.input<typeof wire.usageConversationsResult> {
  return {
    conversations: conversations.map((conversation) => ({
      user_id: conversation.userId,
      agent_id: conversation.agentId,
      conversation_id: conversation.conversationId,
      ...writeReuse(conversation, priced),
    })),
  };
}

/** The JSON of `GET /usage/conversation`. */
export function writeUsageConversation(
  { total, turns }: ConversationTurns,
  priced: Priced,
): z.input<typeof wire.usageConversationResult> {
  const epochs: { began: NonNullable<Row["epoch"]>["began"]; turns: Row[] }[] = [];
  for (const row of turns.rows.toReversed().map(writeUsageRow)) {
    const began = row.epoch?.began ?? null;
    if (epochs.length === 0 || began !== null) epochs.push({ began, turns: [] });
    epochs.at(-1)?.turns.push(row);
  }
  return {
    user_id: total.userId,
    agent_id: total.agentId,
    conversation_id: total.conversationId,
    total: writeReuse(total, priced),
    epochs,
    next: writeCursor(turns.next),
  };
}

/** The JSON of `GET /usage/alerts`. */
export function writeUsageAlerts(states: readonly AlertState[]): z.input<typeof wire.usageAlertsResult> {
  return {
    rules: states.map(({ rule, isFiring, since, value, reference }) => ({
      name: rule.name,
      measure: rule.measure,
      model: rule.model ?? null,
      is_firing: isFiring,
      since,
      value,
      reference,
    })),
  };
}

/** What `readCursor` reads. */
function writeCursor(next: number | null): string | null {
  return next === null ? null : next.toString(36);
}

/** The number before which a page begins; null: at the newest. */
export function readCursor(cursor: string | undefined): number | null {
  if (cursor === undefined) return null;
  const id = Number.parseInt(cursor, 36);
  return Number.isSafeInteger(id) ? id : 0;
}

function isApart(cause: UsageCause): boolean {
  return cause === "below_minimum" || cause === "expired";
}

/** Sums of the same name together, most prompt tokens first. */
function merged(parts: readonly (TimedSums & { readonly name: string })[]) {
  const byName = new Map<string, TimedSums>();
  for (const { name, sums, times } of parts) {
    const before = byName.get(name);
    byName.set(name, before === undefined ? { sums, times } : added(before, { sums, times }));
  }
  return [...byName]
    .map(([name, of]) => ({ name, of }))
    .sort((a, b) => b.of.sums.promptTokens - a.of.sums.promptTokens);
}

function added(a: TimedSums, b: TimedSums): TimedSums {
  const times = new Map(a.times);
  for (const [bin, prompts] of b.times) times.set(bin, (times.get(bin) ?? 0) + prompts);
  const sums = Object.fromEntries(
    Object.entries(a.sums).map(([name, value]) => [name, value + b.sums[name as keyof typeof b.sums]]),
  ) as unknown as TimedSums["sums"];
  return { sums, times };
}

function writeSums(of: TimedSums | null, { hasPrices }: Priced): Sums {
  const { sums, times } = of ?? { sums: null, times: new Map<number, number>() };
  const count = (name: keyof TimedSums["sums"]) => sums?.[name] ?? 0;
  const timed = count("timedPrompts");
  return {
    prompts: count("prompts"),
    reported_prompts: count("reportedPrompts"),
    prompt_tokens: count("promptTokens"),
    expected_cached_tokens: count("expectedTokens"),
    reported_prompt_tokens: count("reportedPromptTokens"),
    reported_cached_tokens: count("reportedCachedTokens"),
    uncached_tokens: count("uncachedTokens"),
    missed_tokens: count("missedTokens"),
    cached_share: shareOf(count("sharedReportedCachedTokens"), count("sharedReportedPromptTokens")),
    expected_share: shareOf(count("sharedExpectedTokens"), count("sharedPromptTokens")),
    below_minimum: { prompts: count("belowMinimumPrompts"), tokens: count("belowMinimumTokens") },
    expired: { prompts: count("expiredPrompts"), tokens: count("expiredTokens") },
    first_token_ms:
      timed === 0
        ? null
        : {
            prompts: timed,
            mean: rounded(count("firstTokenMs") / timed),
            p50: rounded(timeAt(times, 0.5) ?? 0),
            p95: rounded(timeAt(times, 0.95) ?? 0),
          },
    saved_money: hasPrices ? rounded(count("savedMoney")) : null,
    missed_money: hasPrices ? rounded(count("missedMoney")) : null,
  };
}

function writeReuse(sums: ReuseSums, { hasPrices }: Priced) {
  return {
    prompts: sums.prompts,
    prompt_tokens: sums.promptTokens,
    uncached_tokens: sums.uncachedTokens,
    missed_tokens: sums.missedTokens,
    cached_share: shareOf(sums.sharedReportedCachedTokens, sums.sharedReportedPromptTokens),
    expected_share: shareOf(sums.sharedExpectedTokens, sums.sharedPromptTokens),
    saved_money: hasPrices ? rounded(sums.savedMoney) : null,
    last_at: sums.lastAt,
  };
}

/** Null: there is nothing to be a share of. An engine's counts may contradict each other. */
function shareOf(part: number, whole: number): number | null {
  return whole <= 0 ? null : Math.min(1, part / whole);
}

/** To nine digits: sums of what was added and taken away again end in noise. */
function rounded(value: number): number {
  return Number(value.toPrecision(9)) || 0;
}
