/*
 * sqlite/: the journal and the API keys in one SQLite file.
 * In: calls of `JournalDatabase`, on the thread that serves. Out: what is stored, or the errors that it names.
 * Reads run on the calling thread. `JournalWriter` writes, on this thread (`InlineJournal`) or on one of its own (`ThreadedJournal`).
 */

import { setImmediate as nextTurn } from "node:timers/promises";
import { StaleScopeError, StoreUnavailableError } from "../api/store.js";
import type { DatabaseConnection } from "../database/open-database.js";
import { type NamedStatement, PreparedTexts, SQLITE_DIALECT, type SqlReader } from "../database/sql.js";
import type { JournalDatabase, JournalUnit, ScopeRowsFound, WrittenUnit } from "../journal/journal-database.js";
import { JournalReads } from "../journal/journal-sql.js";
import { STORE_THREAD, type WithoutId, WorkerCalls } from "../threads/worker-calls.js";
import {
  JournalWriter,
  type Outcome,
  outcomeOfError,
  type ThreadAnswer,
  type ThreadCall,
  type WriteArguments,
  type WriteName,
  type WriteResult,
  type WritingCall,
} from "./journal-writer.js";

/** Rows of known memories per page: some milliseconds. */
const MEMORIES_AT_ONCE = 20_000;

interface KnownMemories {
  readonly seq: number;
  readonly scopeId: number;
  /** 4 bytes each. */
  readonly hashes: Buffer;
}

/** Reads a file on the calling thread. */
class SqliteReader implements SqlReader {
  readonly dialect = SQLITE_DIALECT;
  readonly #sql: PreparedTexts;

  constructor({ sqlite }: Pick<DatabaseConnection, "sqlite">) {
    this.#sql = new PreparedTexts(sqlite);
  }

  async read<R extends object>({ text }: NamedStatement, values?: readonly unknown[]): Promise<R[]> {
    return this.#sql.run<R>(text, values);
  }
}

/** What `JournalDatabase` reads from a file. */
class SqliteReads extends JournalReads {
  constructor(database: DatabaseConnection) {
    super(new SqliteReader(database), database.digests);
  }

  /** Without an index, because every compose would pay for one and this is rare. `after` is a record's `seq`. */
  async withMemory(tenant: string, hash: number, after: number): Promise<ScopeRowsFound> {
    const text = `select seq, scope_id as "scopeId", hashes from known_memories where seq > $1 order by seq
      limit ${MEMORIES_AT_ONCE}`;
    const rows = await this.reader.read<KnownMemories>({ text }, [after]);
    const found = new Set<number>();
    for (const { scopeId, hashes } of rows) if (hashesIn(hashes).includes(hash >>> 0)) found.add(scopeId);
    const scopes = (await this.scopesById([...found])).filter(({ scope }) => scope.tenant === tenant);
    return { scopes, next: rows.length < MEMORIES_AT_ONCE ? null : (rows.at(-1)?.seq ?? null) };
  }
}

/** The hashes of one row. */
function hashesIn(bytes: Buffer): number[] {
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readUInt32BE(4 * at));
}

/** `JournalDatabase` over reads on this thread, and calls of `JournalWrites`, wherever those run. */
abstract class SqliteJournal extends SqliteReads implements JournalDatabase {
  readonly sealKey: Buffer;

  protected constructor(protected readonly database: DatabaseConnection) {
    super(database);
    this.sealKey = database.digests.key;
  }

  protected abstract tell<Name extends WriteName>(
    name: Name,
    ...args: WriteArguments<Name>
  ): Promise<WriteResult<Name>>;
  abstract idle(): Promise<void>;
  abstract erased(): Promise<void>;
  abstract close(): Promise<void>;

  async write(unit: JournalUnit): Promise<WrittenUnit> {
    const [written] = await this.tell("writeTogether", [unit]);
    return written as WrittenUnit;
  }

  writeTogether: JournalDatabase["writeTogether"] = (...of) => this.tell("writeTogether", ...of);
  deleteUser: JournalDatabase["deleteUser"] = (...of) => this.tell("deleteUser", ...of);
  deletedFromSource: JournalDatabase["deletedFromSource"] = (...of) => this.tell("deletedFromSource", ...of);
  keepResponse: JournalDatabase["keepResponse"] = (...of) => this.tell("keepResponse", ...of);
  keepFirstTokenTime: JournalDatabase["keepFirstTokenTime"] = (...of) => this.tell("keepFirstTokenTime", ...of);
  emptyLog: JournalDatabase["emptyLog"] = (...of) => this.tell("emptyLog", ...of);
}

/** Groups that the writer has: one that it writes, and the next, so that it never waits for this thread. */
const MOST_UNDER_WAY = 2;
/** Calls of a group … */
const MOST_CALLS = 256;
/** … and characters of what they write, from which no more are added: bounds the wait of the first. */
const MOST_CHARACTERS = 4_000_000;

interface Added {
  readonly call: WritingCall;
  readonly size: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/** Groups of calls that go to the writer in one message, and are one transaction there: all that came since the last group. */
export class WriteGroups {
  #added: Added[] = [];
  #underWay = 0;
  #isDue = false;
  #idle: (() => void)[] = [];

  /** @param send writes a group; rejects where none of it is known to be stored */
  constructor(private readonly send: (calls: readonly WritingCall[]) => Promise<readonly Outcome[]>) {}

  add(call: WritingCall): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#added.push({ call, size: sizeOf(call), resolve, reject });
      if (this.#isDue || this.#underWay >= MOST_UNDER_WAY) return;
      this.#isDue = true;
      // With what else this iteration of the event loop brings.
      setImmediate(() => {
        this.#isDue = false;
        this.#sendNext();
      });
    });
  }

  /** Resolves when everything added so far is stored, or has failed. */
  idle(): Promise<void> {
    if (this.#underWay === 0 && this.#added.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #sendNext(): void {
    while (this.#underWay < MOST_UNDER_WAY && this.#added.length > 0) void this.#write(this.#nextGroup());
  }

  #nextGroup(): readonly Added[] {
    let count = 0;
    for (let size = 0; count < this.#added.length && count < MOST_CALLS && size < MOST_CHARACTERS; count++)
      size += this.#added[count]?.size ?? 0;
    return this.#added.splice(0, count);
  }

  async #write(group: readonly Added[]): Promise<void> {
    this.#underWay++;
    try {
      const outcomes = await this.send(group.map(({ call }) => call));
      for (const [at, { resolve }] of group.entries()) resolve(outcomes[at] as Outcome);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
    this.#underWay--;
    this.#sendNext();
    if (this.#underWay === 0 && this.#added.length === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/** Characters that a call writes, about. */
function sizeOf({ name, args }: WritingCall): number {
  if (name !== "writeTogether") return 0;
  let size = 0;
  for (const { changes } of args[0] as readonly JournalUnit[])
    for (const change of changes) {
      if (change.kind === "snapshot") size += change.data.length;
      else if (change.kind === "append")
        for (const { changes: changed, said } of change.records) size += (changed?.length ?? 0) + (said?.length ?? 0);
    }
  return size;
}

/** The call's value; throws what it threw. */
function resultOf(outcome: Outcome): unknown {
  if (!("problem" in outcome)) return outcome.value;
  if (outcome.problem === "stale") throw new StaleScopeError("the scope was changed by another process");
  if (outcome.problem !== "bug") throw new StoreUnavailableError(outcome.problem, { cause: new Error(outcome.cause) });
  const error = new Error(outcome.message);
  if (outcome.stack !== undefined) error.stack = outcome.stack;
  throw error;
}

/**
 * A journal in a file, written by a thread with a connection of its own. Where the thread dies, what is under way rejects as failing, though
 * it may be stored. This process's first connection, which reads, is the last to close the file.
 */
export class ThreadedJournal extends SqliteJournal {
  readonly #writer: WorkerCalls<ThreadCall, ThreadAnswer>;
  readonly #groups = new WriteGroups((calls) => this.#ask({ ask: "write", calls }));
  #isClosed = false;

  /** @param code what the thread runs, where this is not run from where it was built */
  constructor(database: DatabaseConnection, code = new URL("./journal-thread.js", import.meta.url)) {
    super(database);
    const options = { ...STORE_THREAD, workerData: { file: database.sqlite.name } };
    this.#writer = new WorkerCalls(code, options, (cause) => {
      return new StoreUnavailableError("failing", { cause: cause ?? new Error("the thread of the journal ended") });
    });
    // It also goes on with what an earlier process left to erase.
    this.#writer.start();
  }

  protected async tell<Name extends WriteName>(name: Name, ...args: WriteArguments<Name>): Promise<WriteResult<Name>> {
    const outcome = await this.#groups.add({ name, args });
    return resultOf(outcome) as WriteResult<Name>;
  }

  idle = () => this.#groups.idle();

  async erased(): Promise<void> {
    await this.idle();
    const [outcome] = await this.#ask({ ask: "erased" });
    resultOf(outcome as Outcome);
  }

  async close(): Promise<void> {
    await this.idle();
    this.#isClosed = true;
    await this.#writer.end({ ask: "close" });
    this.database.sqlite.close();
  }

  async #ask(asked: WithoutId<ThreadCall>): Promise<readonly Outcome[]> {
    if (this.#isClosed) throw new Error("the journal is closed");
    return (await this.#writer.ask(asked)).outcomes;
  }
}

/**
 * A journal on the calling thread: for databases in memory, commands and tests. Each call is a transaction of its own. A call that writes is
 * answered in a later turn of the event loop, as a thread's is: otherwise who composes in a loop would let no timer and no other request in.
 */
export class InlineJournal extends SqliteJournal {
  readonly #writer: JournalWriter;
  /** Settles when the last call that writes has ended. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(database: DatabaseConnection) {
    super(database);
    this.#writer = new JournalWriter(database);
  }

  protected tell<Name extends WriteName>(name: Name, ...args: WriteArguments<Name>): Promise<WriteResult<Name>> {
    const told = this.#last.then(() => outcomeOf(() => this.#writer.run([{ name, args }])));
    this.#last = told;
    return told.then((outcome) => nextTurn(outcome)).then((outcome) => resultOf(outcome) as WriteResult<Name>);
  }

  async idle(): Promise<void> {
    await this.#last;
  }

  erased = () => this.#writer.erased();

  async close(): Promise<void> {
    await this.idle();
    this.#writer.close();
    this.database.sqlite.close();
  }
}

/** Runs a call. It waits for a lock no longer than SQLite does, which blocks the thread that requests are served on. */
function outcomeOf(work: () => readonly Outcome[]): Outcome {
  try {
    const [outcome] = work();
    return outcome as Outcome;
  } catch (error) {
    return outcomeOfError(error);
  }
}

/**
 * The journal in a database whose scopes are all in it; closing it closes the database. In a file it is written by a thread; in memory, and run from
 * source, where there is no JavaScript file for a thread to load, by this one.
 */
export function journalIn(database: DatabaseConnection): JournalDatabase {
  const isSource = import.meta.filename.endsWith(".ts");
  return database.sqlite.memory || isSource ? new InlineJournal(database) : new ThreadedJournal(database);
}
