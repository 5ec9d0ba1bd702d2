/*
 * usage/: the usage log in a SQLite file of its own beside the store's, so that no compose waits for its writes or reads.
 * In: batches of prompts and engines' reports; queries of one tenant.
 * Out: rows, sums, notes. `threaded-usage-log.ts` runs it in a worker thread.
 */

import { dirname } from "node:path";
import Database from "better-sqlite3";
import { DatabaseOpenError } from "../database/database-open-error.js";
import { makeDirectory } from "../database/make-directory.js";

/** Milliseconds that a statement waits for another process's lock. */
const WAIT_MS = 5_000;
/** The schema's number. A file with a greater one is a newer version's; none with a lesser one was ever published. */
const SCHEMA = 2;

/** Columns of sums over all prompts of a group, user or conversation; integers but for money and times. */
const SHARES = `shared_prompt_tokens integer not null default 0, shared_expected_tokens integer not null default 0,
  shared_reported_prompt_tokens integer not null default 0, shared_reported_cached_tokens integer not null default 0`;
const REUSE = `prompts integer not null default 0, prompt_tokens integer not null default 0,
  uncached_tokens integer not null default 0, missed_tokens integer not null default 0, ${SHARES},
  saved_money real not null default 0, last_at integer not null default 0`;
/** The share that the worst are found by: of those with enough tokens. What was not reported counts as expected. */
const SHARE = `share real generated always as (case
  when shared_reported_prompt_tokens >= 10000
    then cast(shared_reported_cached_tokens as real) / shared_reported_prompt_tokens
  when shared_reported_prompt_tokens = 0 and shared_prompt_tokens >= 10000
    then cast(shared_expected_tokens as real) / shared_prompt_tokens
  end) stored`;

const TABLES = `
create table marks (name text primary key, text text not null) without rowid;
create table tenants (id integer primary key, name text not null unique, prompts integer not null default 0,
  notes integer not null default 0);
create table groups (id integer primary key, tenant integer not null, model text not null, engine text not null,
  layout text not null, unique (tenant, model, engine, layout));
create table shapes (id integer primary key, policy text not null, retention text not null, unique (policy, retention));
create table users (id integer primary key autoincrement, tenant integer not null, name text not null, agent text not null,
  conversations integer not null default 0, ${REUSE}, ${SHARE}, unique (tenant, name, agent));
create index users_missed on users (tenant, missed_tokens);
create index users_share on users (tenant, share) where share is not null;
create index users_last on users (tenant, last_at);
create table conversations (id integer primary key autoincrement, tenant integer not null, user integer not null,
  name text not null, ${REUSE}, ${SHARE}, unique (user, name));
create index conversations_missed on conversations (tenant, missed_tokens);
create index conversations_share on conversations (tenant, share) where share is not null;
create index conversations_last on conversations (tenant, last_at);
create table prompts (id integer primary key autoincrement, tenant integer not null, number integer not null, user integer not null,
  conversation integer, grp integer not null, shape integer not null, request text not null, at integer not null,
  epoch_began text, epoch_prompts integer, prompt_tokens integer not null, expected_tokens integer not null,
  carried_tokens integer not null, planned_cause text, planned_tokens integer, unserved_cause text, unserved_tokens integer,
  reported_prompt_tokens integer, reported_cached_tokens integer, first_token_ms real, apart text,
  saved_money real, missed_money real);
create unique index prompts_request on prompts (user, request);
create unique index prompts_tenant on prompts (tenant, number);
create index prompts_user on prompts (user, id);
create index prompts_conversation on prompts (conversation, id) where conversation is not null;
create index prompts_group on prompts (grp, id);
create table causes (tenant integer not null, cause text not null, prompt integer not null,
  primary key (tenant, cause, prompt)) without rowid;
create table sums (tenant integer not null, step integer not null, start integer not null, grp integer not null,
  prompts integer not null, prompt_tokens integer not null, expected_tokens integer not null,
  uncached_tokens integer not null, missed_tokens integer not null, reported_prompts integer not null,
  reported_prompt_tokens integer not null, reported_cached_tokens integer not null, ${SHARES},
  below_minimum_prompts integer not null, below_minimum_tokens integer not null, expired_prompts integer not null,
  expired_tokens integer not null, timed_prompts integer not null, first_token_ms real not null,
  saved_money real not null, missed_money real not null,
  primary key (tenant, step, start, grp)) without rowid;
create table times (tenant integer not null, step integer not null, start integer not null, grp integer not null,
  bin integer not null, prompts integer not null, primary key (tenant, step, start, grp, bin)) without rowid;
create table cause_sums (tenant integer not null, step integer not null, start integer not null, grp integer not null,
  cause text not null, prompts integer not null, tokens integer not null, money real not null,
  primary key (tenant, step, start, grp, cause)) without rowid;
create table notes (id integer primary key autoincrement, tenant integer, number integer not null, at integer not null, kind text not null,
  label text not null, model text);
create index notes_at on notes (tenant, at);
create table deleted_users (user text not null, at integer not null, primary key (user)) without rowid;
create table changes (id integer primary key autoincrement, tenant integer not null, at integer not null, prompts text not null);
create table alerts (rule text primary key, number integer not null, is_firing integer not null, changed_at integer not null,
  claimed_until integer) without rowid;
`;

/** Opens or makes the file, or `":memory:"`. Throws {@link DatabaseOpenError}. */
export function openUsageDatabase(file: string): Database.Database {
  let sqlite: Database.Database | undefined;
  try {
    if (file !== ":memory:") makeDirectory(dirname(file));
    sqlite = new Database(file, { timeout: WAIT_MS });
    sqlite.pragma("journal_mode = WAL");
    // A power cut may lose the last seconds, never the file.
    sqlite.pragma("synchronous = NORMAL");
    sqlite.pragma("secure_delete = ON");
    sqlite.pragma("cache_size = -32000");
    migrate(sqlite);
    return sqlite;
  } catch (error) {
    sqlite?.close();
    throw new DatabaseOpenError(file, error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function migrate(sqlite: Database.Database): void {
  const made = () => Number(sqlite.pragma("user_version", { simple: true }));
  if (made() > SCHEMA) throw new Error("it is a newer version's");
  if (made() === SCHEMA) return;
  if (made() > 0) throw new Error("a development version from before 0.1.0 wrote it; use an empty data directory");
  sqlite
    .transaction(() => {
      // Another process may have been first.
      if (made() === SCHEMA) return;
      sqlite.exec(TABLES);
      sqlite.pragma(`user_version = ${SCHEMA}`);
    })
    .immediate();
}
