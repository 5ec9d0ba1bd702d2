import type Database from "better-sqlite3";
import { type NewUsage, OTHER_MODELS, type UsageBounds, type UsageGroup, type UsageKey } from "../api/usage-log.js";
import { KeptStatements } from "./kept-statements.js";

/** Longest name of a model. */
const MAX_MODEL = 200;

/** The numbers of what batches name, made where there are none. Each is looked up once in a transaction: another process may write in between. */
export class UsageNames {
  readonly #groups = new Map<string, number>();
  /** Of tenants, users, conversations and shapes. */
  readonly #ids = new Map<string, number>();
  readonly #statements: KeptStatements;

  constructor(
    sqlite: Database.Database,
    private readonly bounds: Pick<UsageBounds, "groups">,
  ) {
    this.#statements = new KeptStatements(sqlite);
  }

  /** At the begin of a transaction. */
  forget(): void {
    this.#groups.clear();
    this.#ids.clear();
  }

  tenantId(name: string): number {
    return this.#remembered(`tenant ${name}`, () => {
      const known = this.#get<{ id: number }>("select id from tenants where name = ?", [name]);
      return known?.id ?? this.#insert("insert into tenants (name) values (?)", [name]);
    });
  }

  userId(tenant: number, { userId, agentId }: UsageKey): number {
    const key = [tenant, userId, agentId ?? ""];
    return this.#remembered(`user ${JSON.stringify(key)}`, () => {
      const known = this.#get<{ id: number }>("select id from users where tenant = ? and name = ? and agent = ?", key);
      return known?.id ?? this.#insert("insert into users (tenant, name, agent) values (?, ?, ?)", key);
    });
  }

  conversationId(tenant: number, user: number, name: string): number {
    return this.#remembered(`conversation ${user} ${name}`, () => {
      const known = this.#get<{ id: number }>("select id from conversations where user = ? and name = ?", [user, name]);
      if (known !== undefined) return known.id;
      this.#statements.of("update users set conversations = conversations + 1 where id = ?").run(user);
      return this.#insert("insert into conversations (tenant, user, name) values (?, ?, ?)", [tenant, user, name]);
    });
  }

  shapeId({ policy, retention }: NewUsage): number {
    const key = [policy, retention];
    return this.#remembered(`shape ${JSON.stringify(key)}`, () => {
      const known = this.#get<{ id: number }>("select id from shapes where policy = ? and retention = ?", key);
      return known?.id ?? this.#insert("insert into shapes (policy, retention) values (?, ?)", key);
    });
  }

  /** What is looked up once in a transaction. */
  #remembered(key: string, find: () => number): number {
    const known = this.#ids.get(key);
    if (known !== undefined) return known;
    const found = find();
    this.#ids.set(key, found);
    return found;
  }

  /** Past the bound a tenant's new models are counted as one: their names are its clients' to choose. */
  groupId(tenant: number, { model: named, engine, layout }: UsageGroup): number {
    const model = named.length > MAX_MODEL ? OTHER_MODELS : named;
    const key = JSON.stringify([tenant, model, engine, layout]);
    const found = this.#groups.get(key) ?? this.#findGroup([tenant, model, engine, layout]);
    if (found !== undefined) {
      this.#groups.set(key, found);
      return found;
    }
    const counted = this.#get<{ n: number }>("select count(*) as n from groups where tenant = ?", [tenant]);
    if (model !== OTHER_MODELS && (counted?.n ?? 0) >= this.bounds.groups)
      return this.groupId(tenant, { model: OTHER_MODELS, engine, layout });
    const id = this.#insert("insert into groups (tenant, model, engine, layout) values (?, ?, ?, ?)", [
      tenant,
      model,
      engine,
      layout,
    ]);
    this.#groups.set(key, id);
    return id;
  }

  #findGroup(key: readonly unknown[]): number | undefined {
    const sql = "select id from groups where tenant = ? and model = ? and engine = ? and layout = ?";
    return this.#get<{ id: number }>(sql, key)?.id;
  }

  #get<T>(sql: string, values: readonly unknown[]): T | undefined {
    return this.#statements.get<T>(sql, values);
  }

  #insert(sql: string, values: readonly unknown[]): number {
    return Number(this.#statements.run(sql, values).lastInsertRowid);
  }
}
