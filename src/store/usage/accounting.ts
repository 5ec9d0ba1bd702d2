import { createHash } from "node:crypto";
import { keptIn, reportedUsage } from "../../core/index.js";
import {
  type NewUsage,
  OTHER_MODELS,
  REUSE_NAMES,
  SUM_NAMES,
  type UsageBounds,
  type UsageEntry,
  type UsageGroup,
  type UsageKey,
  type UsageReport,
} from "../api/usage-log.js";
import { MINUTE_MS, measuresOf, sumsOf, type Valued, valued } from "./usage-figures.js";
import type { NumberedPrompt, RowOf } from "./usage-tables.js";

/** Longest name of a model. */
const MAX_MODEL = 200;

export type OwnerRow = Pick<RowOf<"usage_owners">, "id" | "tenant" | "name" | "agent" | "conversation">;
export type GroupRow = UsageGroup & { readonly id: number; readonly tenant: string };

/** What is stored of what a batch names. */
export interface KnownUsage {
  /** The last number that a row was given. */
  readonly lastId: number;
  /** Prompts that are kept. */
  readonly kept: number;
  /** The last numbers of the tenants' prompts. */
  readonly tenants: ReadonlyMap<string, number>;
  /** All of the batch's tenants. */
  readonly groups: readonly GroupRow[];
  readonly owners: readonly OwnerRow[];
  readonly prompts: readonly NumberedPrompt[];
  /** When users were deleted, by {@link digestOf}. */
  readonly deleted: ReadonlyMap<string, number>;
}

/** What a batch adds to a group's minute, by measure. */
interface MinuteSums {
  readonly groupId: number;
  readonly start: number;
  readonly measures: Map<string, number>;
}

/** What a batch adds to the sums of a user or a conversation, and when its newest prompt of them was composed; 0: it has none. */
interface ReuseChange {
  readonly sums: Map<string, number>;
  lastAt: number;
}

/** Applies a batch to what is known: what is to be written of it, each row once. Pure. */
export class Accounting {
  /** The new last numbers of tenants' prompts. */
  readonly tenants = new Map<string, number>();
  /** New ones. */
  readonly groups: GroupRow[] = [];
  readonly owners: OwnerRow[] = [];
  /** Prompts that are new or changed, by their numbers. */
  readonly written = new Map<number, NumberedPrompt>();
  /** Numbers of prompts that are no longer kept. */
  readonly removed = new Set<number>();
  readonly minutes = new Map<string, MinuteSums>();
  /** By the numbers of owners. */
  readonly reuse = new Map<number, ReuseChange>();
  /** Prompts that are kept after the batch. */
  kept: number;
  lastId: number;
  readonly #prompts = new Map<string, NumberedPrompt>();
  readonly #ownerIds = new Map<string, number>();
  readonly #groupsByName = new Map<string, GroupRow>();
  readonly #groupCounts = new Map<string, number>();

  constructor(
    private readonly known: KnownUsage,
    private readonly bounds: Pick<UsageBounds, "groups">,
  ) {
    this.kept = known.kept;
    // The batch's own number: what it changed is after all that was before, also where it adds no row.
    this.lastId = known.lastId + 1;
    for (const { id, ...owner } of known.owners) this.#ownerIds.set(ownerKey(owner), id);
    for (const group of known.groups) this.#knowGroup(group);
    for (const prompt of known.prompts) this.#prompts.set(promptKey(prompt.kept), prompt);
  }

  take(entry: UsageEntry): void {
    if (entry.kind === "composed") this.#compose(entry);
    else if (entry.kind === "reported") this.#report(entry);
    else {
      const prompt = this.#prompts.get(promptKey(entry));
      if (prompt === undefined) return;
      this.#remove(prompt);
      this.#countMinute(prompt, -1);
    }
  }

  #compose(entry: NewUsage): void {
    const { kind: _, costs, model: named, ...of } = entry;
    const { tenant, userId, agentId, conversationId, at } = of;
    if (this.#isDeleted(tenant, userId, at)) return;
    // The id of a request that was withdrawn or evicted may be used again. What it was before stays in the sums over time.
    const old = this.#prompts.get(promptKey(of));
    if (old !== undefined) this.#remove(old);
    const user = { tenant, name: userId, agent: agentId ?? "" };
    const owner = this.#ownerId({ ...user, conversation: "" });
    const conversation = conversationId === null ? null : this.#ownerId({ ...user, conversation: conversationId });
    const { id: groupId, model } = this.#group(tenant, { ...of, model: named });
    const number = (this.tenants.get(tenant) ?? this.known.tenants.get(tenant) ?? 0) + 1;
    this.tenants.set(tenant, number);
    const kept = { ...of, number, model, ...valued(of.usage, costs) };
    this.#write({ id: ++this.lastId, userId: owner, conversationId: conversation, groupId, kept });
  }

  /** Whether the user was deleted after that. */
  #isDeleted(tenant: string, userId: string, at: number): boolean {
    const { deleted } = this.known;
    const deletedAt = deleted.size === 0 ? undefined : deleted.get(digestOf(tenant, userId));
    return deletedAt !== undefined && at <= deletedAt;
  }

  #report(entry: UsageReport): void {
    const before = this.#prompts.get(promptKey(entry));
    if (before === undefined) return;
    const { kept } = before;
    const { facts, costs, model: named } = entry;
    const usage = reportedUsage(kept.usage, { ...facts, minimumPrefixTokens: costs.minimumPrefixTokens });
    const { id: groupId, model } =
      named === null ? { id: before.groupId, model: kept.model } : this.#group(kept.tenant, { ...kept, model: named });
    this.count(before, kept.at, kept, -1);
    this.#countMinute(before, -1);
    this.#write({ ...before, groupId, kept: { ...kept, model, ...valued(usage, costs) } });
  }

  #write(prompt: NumberedPrompt): void {
    this.#prompts.set(promptKey(prompt.kept), prompt);
    this.written.set(prompt.id, prompt);
    this.count(prompt, prompt.kept.at, prompt.kept, 1);
    this.#countMinute(prompt, 1);
  }

  #remove(prompt: NumberedPrompt): void {
    this.#prompts.delete(promptKey(prompt.kept));
    this.written.delete(prompt.id);
    this.removed.add(prompt.id);
    this.count(prompt, prompt.kept.at, prompt.kept, -1);
  }

  /** Counts a prompt among those that are kept of its owners, or, where it goes, out of them (`sign` -1). */
  count(of: Pick<NumberedPrompt, "userId" | "conversationId">, at: number, figures: Valued, sign: 1 | -1): void {
    this.kept += sign;
    const added = sumsOf(figures);
    for (const id of [of.userId, of.conversationId]) {
      if (id === null) continue;
      const change = keptIn(this.reuse, id, () => ({ sums: new Map(), lastAt: 0 }));
      for (const name of REUSE_NAMES) grow(change.sums, name, sign * added[name]);
      if (sign > 0) change.lastAt = Math.max(change.lastAt, at);
    }
  }

  /** Counts a prompt in its minute, or out of it. Those that go for their age stay in it. */
  #countMinute({ groupId, kept }: NumberedPrompt, sign: 1 | -1): void {
    const start = kept.at - (kept.at % MINUTE_MS);
    const key = `${groupId} ${start}`;
    const { measures } = keptIn(this.minutes, key, () => ({ groupId, start, measures: new Map() }));
    const sums = sumsOf(kept);
    for (const name of SUM_NAMES) grow(measures, name, sign * sums[name]);
    for (const [measure, value] of measuresOf(kept)) grow(measures, measure, sign * value);
  }

  #ownerId(owner: Omit<OwnerRow, "id">): number {
    return keptIn(this.#ownerIds, ownerKey(owner), () => {
      const id = ++this.lastId;
      this.owners.push({ id, ...owner });
      return id;
    });
  }

  /** Past the bound a tenant's new models are counted as one: their names are its clients' to choose. */
  #group(tenant: string, { model: named, engine, layout }: UsageGroup): GroupRow {
    const model = named.length > MAX_MODEL ? OTHER_MODELS : storable(named);
    const known = this.#groupsByName.get(groupKey({ tenant, model, engine, layout }));
    if (known !== undefined) return known;
    if (model !== OTHER_MODELS && (this.#groupCounts.get(tenant) ?? 0) >= this.bounds.groups)
      return this.#group(tenant, { model: OTHER_MODELS, engine, layout });
    const group = { id: ++this.lastId, tenant, model, engine, layout };
    this.#knowGroup(group);
    this.groups.push(group);
    return group;
  }

  #knowGroup(group: GroupRow): void {
    this.#groupsByName.set(groupKey(group), group);
    this.#groupCounts.set(group.tenant, (this.#groupCounts.get(group.tenant) ?? 0) + 1);
  }
}

function grow(sums: Map<string, number>, name: string, value: number): void {
  if (value !== 0) sums.set(name, (sums.get(name) ?? 0) + value);
}

/** No name is kept of a deleted user. */
export function digestOf(tenant: string, userId: string): string {
  return createHash("sha256")
    .update(JSON.stringify([tenant, userId]))
    .digest("base64url");
}

/** As PostgreSQL can store it: a client's word for its model is not checked otherwise. */
export function storable(text: string): string {
  return text.replaceAll("\0", "\u{fffd}").toWellFormed();
}

function promptKey({ tenant, userId, agentId, requestId }: UsageKey): string {
  return JSON.stringify([tenant, userId, agentId, requestId]);
}

function ownerKey({ tenant, name, agent, conversation }: Omit<OwnerRow, "id">): string {
  return JSON.stringify([tenant, name, agent, conversation]);
}

function groupKey({ tenant, model, engine, layout }: Omit<GroupRow, "id">): string {
  return JSON.stringify([tenant, model, engine, layout]);
}
