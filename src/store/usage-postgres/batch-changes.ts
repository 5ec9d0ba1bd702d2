import { createHash } from "node:crypto";
import { reportedUsage } from "../../core/index.js";
import {
  type NewUsage,
  OTHER_MODELS,
  type UsageBounds,
  type UsageEntry,
  type UsageGroup,
  type UsageKey,
  type UsageReport,
} from "../api/usage-log.js";
import { addSums, type GrowingSums, type KeptRow, noSums, sumsOf, valued } from "../usage/usage-sums.js";
import type { UsagePrompt } from "./prompt-rows.js";
import { StepSums } from "./step-sums.js";

/** Longest name of a model. */
const MAX_MODEL = 200;

export interface GroupRow extends UsageGroup {
  readonly id: number;
  readonly tenant: string;
}

/** A user with one agent, or none (`""`). */
export interface UserName {
  readonly tenant: string;
  readonly name: string;
  readonly agent: string;
}

/** What is stored of what a batch names. */
export interface KnownUsage {
  /** The last number that a row was given. */
  readonly lastId: number;
  /** Prompts that are kept. */
  readonly kept: number;
  /** The numbers that tenants' prompts have reached. */
  readonly tenants: ReadonlyMap<string, number>;
  /** All of the batch's tenants. */
  readonly groups: readonly GroupRow[];
  readonly users: readonly (UserName & { readonly id: number })[];
  readonly conversations: readonly { readonly id: number; readonly userId: number; readonly name: string }[];
  readonly prompts: readonly UsagePrompt[];
  /** The oldest of all tenants, oldest first: as many as may have to go … */
  readonly oldest: readonly UsagePrompt[];
  /** … or all that are kept. */
  readonly isOldestAll: boolean;
  /** When users were deleted, by {@link digestOf}. */
  readonly deleted: ReadonlyMap<string, number>;
}

/** What a batch adds to a user's or a conversation's row; new ones are made by it. */
interface ReuseChange {
  readonly tenant: string;
  readonly name: string;
  readonly sums: GrowingSums;
  lastAt: number;
}
export type UserChange = ReuseChange & { readonly agent: string; conversations: number };
export type ConversationChange = ReuseChange & { readonly userId: number };

/** Applies a batch to what is known: what is to be written of it, each row once. Pure. */
export class BatchChanges {
  readonly steps = new StepSums();
  /** By their numbers. */
  readonly users = new Map<number, UserChange>();
  readonly conversations = new Map<number, ConversationChange>();
  readonly tenants = new Map<string, number>();
  readonly groups: GroupRow[] = [];
  /** Prompts that are new or changed, by their numbers, oldest first. */
  readonly written = new Map<number, UsagePrompt>();
  /** Those that were stored before, and go. */
  readonly removed = new Set<number>();
  /** Prompts that are kept behind the batch. */
  kept: number;
  lastId: number;
  readonly #stored = new Set<number>();
  readonly #prompts = new Map<string, UsagePrompt>();
  readonly #userIds = new Map<string, number>();
  readonly #conversationIds = new Map<string, number>();
  readonly #groupsByName = new Map<string, GroupRow>();
  readonly #groupCounts = new Map<string, number>();
  readonly #touched = new Set<number>();

  constructor(
    private readonly known: KnownUsage,
    private readonly bounds: UsageBounds,
  ) {
    this.kept = known.kept;
    this.lastId = known.lastId;
    for (const user of known.users) this.#userIds.set(nameOf(user), user.id);
    for (const { id, userId, name } of known.conversations) this.#conversationIds.set(`${userId} ${name}`, id);
    for (const group of known.groups) this.#knowGroup(group);
    for (const prompt of known.prompts) {
      this.#prompts.set(`${prompt.userId} ${prompt.kept.requestId}`, prompt);
      this.#stored.add(prompt.id);
    }
    for (const { id } of known.oldest) this.#stored.add(id);
  }

  take(entry: UsageEntry): void {
    if (entry.kind === "composed") this.#compose(entry);
    else if (entry.kind === "reported") this.#report(entry);
    else {
      const prompt = this.#find(entry);
      if (prompt !== undefined) this.#remove(prompt, "kept");
    }
  }

  /** Removes what is past the bounds: too many, or composed before a time. Of what is known. */
  prune(before: number): void {
    const tooMany = Math.max(0, this.kept - this.bounds.prompts);
    const behind = this.known.isOldestAll ? [...this.written.values()].filter(({ id }) => !this.#stored.has(id)) : [];
    // As they are behind the batch.
    const oldest = this.known.oldest.flatMap((one) =>
      this.removed.has(one.id) ? [] : [this.written.get(one.id) ?? one],
    );
    for (const [at, prompt] of [...oldest, ...behind].entries())
      if (at < tooMany || prompt.kept.at < before) this.#remove(prompt, "gone");
  }

  /** Ids of prompts that the batch recorded or changed and that are kept, by tenant. */
  changed(): ReadonlyMap<string, readonly number[]> {
    const byTenant = new Map<string, number[]>();
    for (const id of this.#touched) {
      const prompt = this.written.get(id);
      if (prompt === undefined) continue;
      const ids = byTenant.get(prompt.kept.tenant) ?? [];
      ids.push(id);
      byTenant.set(prompt.kept.tenant, ids);
    }
    return byTenant;
  }

  #compose(entry: NewUsage): void {
    const { tenant, userId, agentId, requestId, conversationId, at } = entry;
    if (this.#isDeleted(tenant, userId, at)) return;
    const user = { tenant, name: userId, agent: agentId ?? "" };
    const id = this.#userId(user);
    // The id of a request that was withdrawn or evicted may be used again.
    const old = this.#prompts.get(`${id} ${requestId}`);
    if (old !== undefined) this.#remove(old, "gone");
    const conversation = conversationId === null ? null : this.#conversationId(user, id, conversationId);
    const group = this.#group(tenant, entry);
    const number = (this.tenants.get(tenant) ?? this.known.tenants.get(tenant) ?? 0) + 1;
    this.tenants.set(tenant, number);
    const { policy, retention, epoch } = entry;
    const { model, engine, layout } = group;
    const { usage, apart, savedMoney, missedMoney } = valued(entry.usage, entry.costs);
    const kept: KeptRow = {
      number,
      tenant,
      userId,
      agentId,
      requestId,
      conversationId,
      model,
      engine,
      layout,
      at,
      policy,
      retention,
      epoch,
      usage,
      apart,
      savedMoney,
      missedMoney,
    };
    this.#write({ id: ++this.lastId, userId: id, conversationId: conversation, groupId: group.id, kept });
  }

  /** Whether the user was deleted after that. */
  #isDeleted(tenant: string, userId: string, at: number): boolean {
    const { deleted } = this.known;
    const deletedAt = deleted.size === 0 ? undefined : deleted.get(digestOf(tenant, userId));
    return deletedAt !== undefined && at <= deletedAt;
  }

  #report(entry: UsageReport): void {
    const before = this.#find(entry);
    if (before === undefined) return;
    const { kept } = before;
    const { facts, costs } = entry;
    const value = valued(
      reportedUsage(kept.usage, { ...facts, minimumPrefixTokens: costs.minimumPrefixTokens }),
      costs,
    );
    const group = entry.model === null ? null : this.#group(kept.tenant, { ...kept, model: entry.model });
    this.#count(before, -1, "kept");
    this.#write({
      ...before,
      groupId: group?.id ?? before.groupId,
      kept: { ...kept, ...(group === null ? {} : { model: group.model }), ...value },
    });
  }

  #find({ tenant, userId, agentId, requestId }: UsageKey): UsagePrompt | undefined {
    const user = this.#userIds.get(nameOf({ tenant, name: userId, agent: agentId ?? "" }));
    return user === undefined ? undefined : this.#prompts.get(`${user} ${requestId}`);
  }

  #write(prompt: UsagePrompt): void {
    this.#prompts.set(`${prompt.userId} ${prompt.kept.requestId}`, prompt);
    this.written.set(prompt.id, prompt);
    this.#touched.add(prompt.id);
    this.#count(prompt, 1, "kept");
  }

  /** Removes a prompt, and what it adds to its user and its conversation; from the sums over time only where it was never composed. */
  #remove(prompt: UsagePrompt, place: "kept" | "gone"): void {
    this.#prompts.delete(`${prompt.userId} ${prompt.kept.requestId}`);
    this.written.delete(prompt.id);
    if (this.#stored.has(prompt.id)) this.removed.add(prompt.id);
    this.#count(prompt, -1, place);
  }

  #count({ userId, conversationId, groupId, kept }: UsagePrompt, sign: 1 | -1, place: "kept" | "gone"): void {
    const { tenant, at } = kept;
    const added = sumsOf(kept);
    this.kept += sign;
    const user = this.#userChange(userId, { tenant, name: kept.userId, agent: kept.agentId ?? "" });
    const of: ReuseChange[] = [user];
    if (conversationId !== null && kept.conversationId !== null)
      of.push(this.#conversationChange(conversationId, { tenant, userId, name: kept.conversationId }));
    for (const change of of) {
      addSums(change.sums, added, sign);
      if (sign > 0) change.lastAt = Math.max(change.lastAt, at);
    }
    if (place === "kept") this.steps.add({ tenant, groupId }, at, kept, sign);
  }

  #userId(user: UserName): number {
    const known = this.#userIds.get(nameOf(user));
    if (known !== undefined) return known;
    const id = ++this.lastId;
    this.#userIds.set(nameOf(user), id);
    return id;
  }

  #conversationId(user: UserName, userId: number, name: string): number {
    const known = this.#conversationIds.get(`${userId} ${name}`);
    if (known !== undefined) return known;
    const id = ++this.lastId;
    this.#conversationIds.set(`${userId} ${name}`, id);
    this.#userChange(userId, user).conversations++;
    return id;
  }

  #userChange(id: number, user: UserName): UserChange {
    const change = this.users.get(id) ?? { ...user, conversations: 0, sums: noSums(), lastAt: 0 };
    this.users.set(id, change);
    return change;
  }

  #conversationChange(id: number, of: Pick<ConversationChange, "tenant" | "userId" | "name">): ConversationChange {
    const change = this.conversations.get(id) ?? { ...of, sums: noSums(), lastAt: 0 };
    this.conversations.set(id, change);
    return change;
  }

  /** Past the bound a tenant's new models are counted as one: their names are its clients' to choose. */
  #group(tenant: string, { model: named, engine, layout }: UsageGroup): GroupRow {
    const model = named.length > MAX_MODEL ? OTHER_MODELS : storable(named);
    const known = this.#groupsByName.get(groupName({ tenant, model, engine, layout }));
    if (known !== undefined) return known;
    if (model !== OTHER_MODELS && (this.#groupCounts.get(tenant) ?? 0) >= this.bounds.groups)
      return this.#group(tenant, { model: OTHER_MODELS, engine, layout });
    const group = { id: ++this.lastId, tenant, model, engine, layout };
    this.#knowGroup(group);
    this.groups.push(group);
    return group;
  }

  #knowGroup(group: GroupRow): void {
    this.#groupsByName.set(groupName(group), group);
    this.#groupCounts.set(group.tenant, (this.#groupCounts.get(group.tenant) ?? 0) + 1);
  }
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

export function nameOf({ tenant, name, agent }: UserName): string {
  return JSON.stringify([tenant, name, agent]);
}

function groupName({ tenant, model, engine, layout }: Omit<GroupRow, "id">): string {
  return JSON.stringify([tenant, model, engine, layout]);
}
