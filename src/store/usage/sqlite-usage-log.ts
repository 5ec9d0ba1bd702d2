import type Database from "better-sqlite3";
import type { ConversationId, UserId } from "../../core/index.js";
import type { AlertClaim, JudgedRule } from "../api/alert-claims.js";
import type {
  ConversationReuse,
  FollowedUsage,
  KeptNote,
  KeptUsage,
  NewNote,
  ReuseOrder,
  UsageBounds,
  UsageChanges,
  UsageCursor,
  UsageEntry,
  UsageFilter,
  UsageKey,
  UsagePage,
  UsageView,
  UserReuse,
  WindowMisses,
  WindowSums,
} from "../api/usage-log.js";
import { ChangedPrompts } from "./changed-prompts.js";
import { KeptAlerts } from "./kept-alerts.js";
import { agentOf, UsageReading } from "./usage-reading.js";
import { keptRow, keyOf, PROMPT_OF, PROMPT_ROWS, type PromptRow, type ReuseRow, reuseOf } from "./usage-rows.js";
import { UsageWriting } from "./usage-writing.js";

/** Which rows come first, and their index. */
const ORDERS: Readonly<Record<ReuseOrder, string>> = {
  missed_tokens: "r.missed_tokens desc",
  cached_share: "r.share",
  last_at: "r.last_at desc",
};

/** The usage log in SQLite, synchronous: `ThreadedUsageLog` makes a {@link UsageLog} of it. */
export class SqliteUsageLog {
  readonly #reading: UsageReading;
  readonly #writing: UsageWriting;
  readonly #changes: ChangedPrompts;
  readonly #alerts: KeptAlerts;

  constructor(
    private readonly sqlite: Database.Database,
    private readonly bounds: UsageBounds,
  ) {
    this.#reading = new UsageReading(sqlite);
    this.#changes = new ChangedPrompts(sqlite);
    this.#alerts = new KeptAlerts(sqlite);
    this.#writing = new UsageWriting(sqlite, bounds, this.#changes);
  }

  record(batch: readonly UsageEntry[], now: number): void {
    this.#writing.record(batch, now);
  }

  changes(
    since: UsageCursor | null,
    followed: readonly FollowedUsage[],
  ): { readonly cursor: UsageCursor; readonly changes: readonly UsageChanges[] } {
    return this.#changes.since(since, followed, this.#reading);
  }

  summary(view: UsageView): WindowSums {
    return this.#reading.summary(view);
  }

  misses(view: UsageView): WindowMisses {
    return this.#reading.misses(view);
  }

  prompts(filter: UsageFilter, before: number | null, limit: number): UsagePage {
    return this.#reading.prompts(filter, before, limit);
  }

  prompt(key: UsageKey): KeptUsage | null {
    const row = this.sqlite.prepare(PROMPT_OF).get(keyOf(key)) as PromptRow | undefined;
    return row === undefined ? null : keptRow(row);
  }

  users(tenant: string, order: ReuseOrder, limit: number): readonly UserReuse[] {
    const rows = this.sqlite
      .prepare(
        `select r.*, r.name as user from users r where r.tenant = (select id from tenants where name = ?)
         ${order === "cached_share" ? "and r.share is not null" : ""} order by ${ORDERS[order]} limit ?`,
      )
      .all(tenant, limit) as ReuseRow[];
    return rows.map((row) => ({ ...reuseOf(row), conversations: row.conversations }));
  }

  conversations(
    { tenant, userId, agentId }: Pick<UsageFilter, "tenant" | "userId" | "agentId">,
    order: ReuseOrder,
    limit: number,
  ): readonly ConversationReuse[] {
    const ofUser = userId === undefined ? "" : "and u.name = @userId and (@agentId is null or u.agent = @agentId)";
    // The outer table is the one whose index gives the order, or finds the user.
    const from = userId === undefined ? "conversations r cross join users u" : "users u cross join conversations r";
    const rows = this.sqlite
      .prepare(
        `select r.*, r.name as conversation, u.name as user, u.agent from ${from} on u.id = r.user
         where u.tenant = (select id from tenants where name = @tenant) and r.tenant = u.tenant ${ofUser}
         ${order === "cached_share" ? "and r.share is not null" : ""} order by ${ORDERS[order]} limit @limit`,
      )
      .all({ tenant, limit, ...(userId === undefined ? {} : { userId, agentId: agentOf(agentId) }) }) as ReuseRow[];
    return rows.map(conversationOf);
  }

  conversation({
    tenant,
    userId,
    agentId,
    conversationId,
  }: Omit<UsageKey, "requestId"> & { readonly conversationId: ConversationId }): ConversationReuse | null {
    const row = this.sqlite
      .prepare(
        `select r.*, r.name as conversation, u.name as user, u.agent from tenants t cross join users u on u.tenant = t.id
         cross join conversations r on r.user = u.id where t.name = ? and u.name = ? and u.agent = ? and r.name = ?`,
      )
      .get(tenant, userId, agentId ?? "", conversationId) as ReuseRow | undefined;
    return row === undefined ? null : conversationOf(row);
  }

  note(note: NewNote): KeptNote {
    const { tenant, at, kind, label, model } = note;
    const write = this.sqlite.transaction(() => {
      const owner = tenant === null ? null : this.#writing.ownerOf(tenant);
      // Those of all tenants are numbered downwards, so that no two that a tenant sees are alike.
      const lowest = this.sqlite.prepare("select min(number) as number from notes where tenant is null");
      const ofAll = (lowest.get() as { number: number | null }).number ?? 0;
      const number = owner === null ? ofAll - 1 : this.#writing.nextNote(owner);
      this.sqlite
        .prepare("insert into notes (tenant, number, at, kind, label, model) values (?, ?, ?, ?, ?, ?)")
        .run(owner, number, at, kind, label, model);
      this.sqlite
        .prepare(
          "delete from notes where tenant is @owner and id in (select id from notes where tenant is @owner order by at desc, id desc limit -1 offset @most)",
        )
        .run({ owner, most: this.bounds.notes });
      return number;
    });
    return { number: write.immediate(), ...note };
  }

  replaceMark(name: string, text: string): string | null {
    const replace = this.sqlite.transaction(() => {
      const before = this.sqlite.prepare("select text from marks where name = ?").get(name) as
        | { text: string }
        | undefined;
      this.sqlite
        .prepare("insert into marks values (?, ?) on conflict do update set text = excluded.text")
        .run(name, text);
      return before?.text ?? null;
    });
    return replace.immediate();
  }

  claimAlert(judged: JudgedRule): AlertClaim {
    return this.#alerts.claim(judged);
  }

  settleAlert(rule: string, claim: number): void {
    this.#alerts.settle(rule, claim);
  }

  deleteUser(tenant: string, userId: UserId, now: number): void {
    this.#writing.deleteUser(tenant, userId, now);
  }

  exportUser(tenant: string, userId: UserId): readonly KeptUsage[] {
    const rows = this.sqlite
      .prepare(
        `${PROMPT_ROWS} where p.user in (select id from users where tenant = (select id from tenants where name = ?) and name = ?)
         order by p.id`,
      )
      .all(tenant, userId) as PromptRow[];
    return rows.map(keptRow);
  }

  close(): void {
    this.sqlite.close();
  }
}

function conversationOf(row: ReuseRow): ConversationReuse {
  return { ...reuseOf(row), conversationId: row.conversation as ConversationId };
}
