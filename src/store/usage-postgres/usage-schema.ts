import { isNotNull, sql } from "drizzle-orm";
import {
  bigint,
  boolean,
  doublePrecision,
  index,
  integer,
  pgSchema,
  primaryKey,
  text,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { SCHEMA } from "../postgres/schema.js";

/*
 * The usage log's tables in PostgreSQL, beside the journal's. Numbers of rows are given by the process that writes them, under the log's
 * lock. There are no foreign keys: whoever deletes a user holds that lock, too.
 */

const memstem = pgSchema(SCHEMA);

const big = (name: string) => bigint(name, { mode: "number" });
const zero = (name: string) => big(name).notNull().default(0);
const count = (name: string) => big(name).notNull();

/** One row: the last number that was given, and how many prompts are kept. */
export const usageState = memstem.table("usage_state", {
  id: integer("id").primaryKey(),
  lastId: count("last_id"),
  kept: count("kept"),
});

/** Texts that are remembered under a name. */
export const usageMarks = memstem.table("usage_marks", {
  name: text("name").primaryKey(),
  text: text("text").notNull(),
});

/** Batches that were recorded lately: one whose outcome was not heard of is not recorded twice. */
export const usageBatches = memstem.table(
  "usage_batches",
  { id: text("id").primaryKey(), at: count("at") },
  (table) => [index("usage_batches_by_time").on(table.at)],
);

/** The numbers that tenants' prompts and notes have reached. */
export const usageTenants = memstem.table("usage_tenants", {
  tenant: text("tenant").primaryKey(),
  prompts: zero("prompts"),
  notes: zero("notes"),
});

/** What prompts are counted under. */
export const usageGroups = memstem.table(
  "usage_groups",
  {
    id: big("id").primaryKey(),
    tenant: text("tenant").notNull(),
    model: text("model").notNull(),
    engine: text("engine").notNull(),
    layout: text("layout").notNull(),
  },
  (table) => [uniqueIndex("usage_groups_by_name").on(table.tenant, table.model, table.engine, table.layout)],
);

const shares = {
  sharedPromptTokens: zero("shared_prompt_tokens"),
  sharedExpectedTokens: zero("shared_expected_tokens"),
  sharedReportedPromptTokens: zero("shared_reported_prompt_tokens"),
  sharedReportedCachedTokens: zero("shared_reported_cached_tokens"),
};
const money = (name: string) => doublePrecision(name).notNull().default(0);

/** Sums over the prompts that are kept of a user or a conversation. */
const reuse = {
  prompts: zero("prompts"),
  promptTokens: zero("prompt_tokens"),
  uncachedTokens: zero("uncached_tokens"),
  missedTokens: zero("missed_tokens"),
  ...shares,
  savedMoney: money("saved_money"),
  lastAt: zero("last_at"),
  /** What the worst are found by: of those with enough tokens. What was not reported counts as expected. */
  share: doublePrecision("share").generatedAlwaysAs(sql`case
    when shared_reported_prompt_tokens >= 10000
      then shared_reported_cached_tokens::double precision / shared_reported_prompt_tokens
    when shared_reported_prompt_tokens = 0 and shared_prompt_tokens >= 10000
      then shared_expected_tokens::double precision / shared_prompt_tokens end`),
};

/** A row for each agent of a user, and one without (`""`), of which prompts are kept. */
export const usageUsers = memstem.table(
  "usage_users",
  {
    id: big("id").primaryKey(),
    tenant: text("tenant").notNull(),
    name: text("name").notNull(),
    agent: text("agent").notNull(),
    conversations: zero("conversations"),
    ...reuse,
  },
  (table) => [
    uniqueIndex("usage_users_by_name").on(table.tenant, table.name, table.agent),
    index("usage_users_by_missed").on(table.tenant, table.missedTokens),
    index("usage_users_by_share").on(table.tenant, table.share).where(isNotNull(table.share)),
    index("usage_users_by_time").on(table.tenant, table.lastAt),
  ],
);

export const usageConversations = memstem.table(
  "usage_conversations",
  {
    id: big("id").primaryKey(),
    tenant: text("tenant").notNull(),
    userId: big("user_id").notNull(),
    name: text("name").notNull(),
    ...reuse,
  },
  (table) => [
    uniqueIndex("usage_conversations_by_name").on(table.userId, table.name),
    index("usage_conversations_by_missed").on(table.tenant, table.missedTokens),
    index("usage_conversations_by_share").on(table.tenant, table.share).where(isNotNull(table.share)),
    index("usage_conversations_by_time").on(table.tenant, table.lastAt),
  ],
);

/** Prompts. `id` grows with all tenants' together, `number` with the tenant's own. */
export const usagePrompts = memstem.table(
  "usage_prompts",
  {
    id: big("id").primaryKey(),
    tenant: text("tenant").notNull(),
    number: count("number"),
    userId: big("user_id").notNull(),
    conversationId: big("conversation_id"),
    groupId: big("group_id").notNull(),
    policy: text("policy").notNull(),
    retention: text("retention").notNull(),
    request: text("request").notNull(),
    at: count("at"),
    epochBegan: text("epoch_began"),
    epochPrompts: big("epoch_prompts"),
    promptTokens: count("prompt_tokens"),
    expectedTokens: count("expected_tokens"),
    carriedTokens: count("carried_tokens"),
    plannedCause: text("planned_cause"),
    plannedTokens: big("planned_tokens"),
    unservedCause: text("unserved_cause"),
    unservedTokens: big("unserved_tokens"),
    reportedPromptTokens: big("reported_prompt_tokens"),
    reportedCachedTokens: big("reported_cached_tokens"),
    firstTokenMs: doublePrecision("first_token_ms"),
    apart: text("apart"),
    savedMoney: doublePrecision("saved_money"),
    missedMoney: doublePrecision("missed_money"),
  },
  (table) => [
    // One text: by two columns, the planner may look for a request among all of its user's.
    uniqueIndex("usage_prompts_by_request").on(sql`(user_id::text || ' ' || request)`),
    uniqueIndex("usage_prompts_by_number").on(table.tenant, table.number),
    index("usage_prompts_by_user").on(table.userId, table.number),
    index("usage_prompts_by_conversation")
      .on(table.conversationId, table.number)
      .where(isNotNull(table.conversationId)),
    index("usage_prompts_by_group").on(table.groupId, table.number),
    index("usage_prompts_by_planned")
      .on(table.tenant, table.plannedCause, table.number)
      .where(isNotNull(table.plannedCause)),
    index("usage_prompts_by_unserved")
      .on(table.tenant, table.unservedCause, table.number)
      .where(isNotNull(table.unservedCause)),
  ],
);

/** A step of a window, by its length and its start in milliseconds. */
const step = {
  tenant: text("tenant").notNull(),
  step: count("step"),
  start: count("start"),
  groupId: big("group_id").notNull(),
};

export const usageSums = memstem.table(
  "usage_sums",
  {
    ...step,
    prompts: zero("prompts"),
    promptTokens: zero("prompt_tokens"),
    expectedTokens: zero("expected_tokens"),
    uncachedTokens: zero("uncached_tokens"),
    missedTokens: zero("missed_tokens"),
    reportedPrompts: zero("reported_prompts"),
    reportedPromptTokens: zero("reported_prompt_tokens"),
    reportedCachedTokens: zero("reported_cached_tokens"),
    ...shares,
    belowMinimumPrompts: zero("below_minimum_prompts"),
    belowMinimumTokens: zero("below_minimum_tokens"),
    expiredPrompts: zero("expired_prompts"),
    expiredTokens: zero("expired_tokens"),
    timedPrompts: zero("timed_prompts"),
    firstTokenMs: money("first_token_ms"),
    savedMoney: money("saved_money"),
    missedMoney: money("missed_money"),
  },
  (table) => [
    primaryKey({ columns: [table.tenant, table.step, table.start, table.groupId] }),
    index("usage_sums_by_start").on(table.step, table.start),
  ],
);

/** Times to the first token, by their bins. */
export const usageTimes = memstem.table(
  "usage_times",
  { ...step, bin: integer("bin").notNull(), prompts: count("prompts") },
  (table) => [
    primaryKey({ columns: [table.tenant, table.step, table.start, table.groupId, table.bin] }),
    index("usage_times_by_start").on(table.step, table.start),
  ],
);

export const usageCauses = memstem.table(
  "usage_causes",
  {
    ...step,
    cause: text("cause").notNull(),
    prompts: count("prompts"),
    tokens: count("tokens"),
    money: money("money"),
  },
  (table) => [
    primaryKey({ columns: [table.tenant, table.step, table.start, table.groupId, table.cause] }),
    index("usage_causes_by_start").on(table.step, table.start),
  ],
);

/** Notes of a tenant; of all tenants where it is null. */
export const usageNotes = memstem.table(
  "usage_notes",
  {
    id: big("id").primaryKey().generatedAlwaysAsIdentity(),
    tenant: text("tenant"),
    number: count("number"),
    at: count("at"),
    kind: text("kind").notNull(),
    label: text("label").notNull(),
    model: text("model"),
  },
  (table) => [index("usage_notes_by_time").on(table.tenant, table.at), index("usage_notes_by_age").on(table.at)],
);

/** Which prompts each batch changed, for a short while: other processes may follow them. */
export const usageChanges = memstem.table("usage_changes", {
  id: big("id").primaryKey().generatedAlwaysAsIdentity(),
  tenant: text("tenant").notNull(),
  at: count("at"),
  prompts: big("prompts").array().notNull(),
});

/** What alert rules were last judged to be, and who tells of it: see `judgedAlert`. */
export const usageAlerts = memstem.table("usage_alerts", {
  rule: text("rule").primaryKey(),
  number: count("number"),
  isFiring: boolean("is_firing").notNull(),
  changedAt: count("changed_at"),
  claimedUntil: big("claimed_until"),
});

/** Digests of users that were deleted lately: what other processes record of them late is left out. */
export const usageDeletedUsers = memstem.table("usage_deleted_users", {
  digest: text("digest").primaryKey(),
  at: count("at"),
});
