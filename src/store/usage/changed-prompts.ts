import type Database from "better-sqlite3";
import {
  CHANGES_KEPT_MS,
  type FollowedUsage,
  type KeptNote,
  type KeptUsage,
  type UsageChanges,
  type UsageCursor,
  type UsageFilter,
} from "../api/usage-log.js";
import { type NoteRow, noteOf } from "./usage-rows.js";

/** Where prompts are read whose ids were found. */
interface Rows {
  rows(ids: readonly number[]): readonly KeptUsage[];
}

/** Conditions of a filter, each with the table that it needs. */
const GROUP = "join groups g on g.id = p.grp";
const USER = "join users u on u.id = p.user";
const CONDITIONS: readonly {
  readonly name: Exclude<keyof UsageFilter, "tenant">;
  readonly join: string;
  readonly where: string;
}[] = [
  { name: "model", join: GROUP, where: "g.model = @model" },
  { name: "engine", join: GROUP, where: "g.engine = @engine" },
  { name: "layout", join: GROUP, where: "g.layout = @layout" },
  { name: "userId", join: USER, where: "u.name = @userId" },
  { name: "agentId", join: USER, where: "u.agent = @agentId" },
  {
    name: "conversationId",
    join: "join conversations c on c.id = p.conversation",
    where: "c.name = @conversationId",
  },
  { name: "cause", join: "", where: "(p.planned_cause = @cause or p.unserved_cause = @cause)" },
];

/**
 * Which prompts each batch changed, for a short while: a row per batch and tenant, whether or not anybody follows it, because whoever does
 * may be another process. Those who follow read rows of the newest that fit their filter, and a count of the others.
 */
export class ChangedPrompts {
  readonly #keep: Database.Statement;
  readonly #drop: Database.Statement;
  readonly #cursor: Database.Statement;
  readonly #notes: Database.Statement;

  constructor(private readonly sqlite: Database.Database) {
    this.#keep = sqlite.prepare("insert into changes (tenant, at, prompts) values (?, ?, ?)");
    this.#drop = sqlite.prepare("delete from changes where at < ?");
    // Numbers that are never given again, also where all rows are gone.
    const last = (table: string) => `coalesce((select seq from sqlite_sequence where name = '${table}'), 0)`;
    this.#cursor = sqlite.prepare(`select ${last("changes")} as change, ${last("notes")} as note`);
    this.#notes = sqlite.prepare(
      `select n.number, n.at, n.kind, n.label, n.model, t.name as tenant from notes n left join tenants t on t.id = n.tenant
       where n.id > ? and (n.tenant is null or t.name = ?) order by n.id`,
    );
  }

  /** In the transaction that changed them. */
  keep(changed: ReadonlyMap<number, ReadonlySet<number>>, now: number): void {
    for (const [tenant, ids] of changed) this.#keep.run(tenant, now, JSON.stringify([...ids]));
  }

  drop(now: number): void {
    this.#drop.run(now - CHANGES_KEPT_MS);
  }

  /** See `UsageLog.changes`. */
  since(
    since: UsageCursor | null,
    followed: readonly FollowedUsage[],
    reading: Rows,
  ): { readonly cursor: UsageCursor; readonly changes: readonly UsageChanges[] } {
    // One state of the file: another process may write in between.
    const read = this.sqlite.transaction(() => {
      const cursor = this.#cursor.get() as UsageCursor;
      const from = since ?? cursor;
      return { cursor, changes: followed.map((one) => this.#of(one, from, cursor, reading)) };
    });
    return read.deferred();
  }

  #of({ filter, limit }: FollowedUsage, since: UsageCursor, to: UsageCursor, reading: Rows): UsageChanges {
    const ids = since.change < to.change ? this.#ids(filter, since.change) : [];
    const newest = ids.slice(0, limit);
    const rows = newest.length === 0 ? [] : reading.rows(newest).toReversed();
    return {
      rows,
      leftOut: ids.length - newest.length,
      notes: since.note < to.note ? this.#notesOf(filter, since) : [],
    };
  }

  /** Newest first. */
  #ids(filter: UsageFilter, since: number): readonly number[] {
    const met = CONDITIONS.filter(({ name }) => filter[name] !== undefined);
    const joins = new Set(met.map(({ join }) => join));
    const values = Object.fromEntries(met.map(({ name }) => [name, filter[name] ?? ""]));
    const rows = this.sqlite
      .prepare(
        `select distinct p.id from changes s cross join json_each(s.prompts) j cross join prompts p on p.id = j.value
         ${[...joins].join(" ")}
         where s.id > @since and s.tenant = (select id from tenants where name = @tenant) and p.tenant = s.tenant
         ${met.map(({ where }) => `and ${where}`).join(" ")} order by p.id desc`,
      )
      .all({ ...values, since, tenant: filter.tenant }) as { id: number }[];
    return rows.map(({ id }) => id);
  }

  #notesOf({ tenant }: UsageFilter, since: UsageCursor): readonly KeptNote[] {
    const rows = this.#notes.all(since.note, tenant) as (NoteRow & { readonly tenant: string | null })[];
    return rows.map(({ tenant: owner, ...row }) => noteOf(row, owner));
  }
}
