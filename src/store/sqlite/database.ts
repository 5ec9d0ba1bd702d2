import type { Database, ReadRows, SqlValue, Statement, UserTransaction } from "../database.js";
import { StoreUnavailableError, type User } from "../store.js";
import { STORE_THREAD, WorkerCalls } from "../threads/worker-calls.js";
import type { Connection } from "./connection.js";
import {
  type Outcome,
  type ReaderAnswer,
  type ReaderCall,
  throwOutcome,
  Writer,
  type WriterAnswer,
  type WriterCall,
} from "./writer.js";

/** Groups that the writer has: one that it writes, and the next, so that it never waits for this thread. */
const MOST_UNDER_WAY = 2;
/** Transactions of a group … */
const MOST_TRANSACTIONS = 256;
/** … and characters of what they write, from which no more are added: bounds the wait of the first. */
const MOST_CHARACTERS = 4_000_000;

/** What writes the file: a thread, or this one. */
interface Writing {
  write(transactions: readonly (readonly Statement[])[]): Promise<readonly Outcome[]>;
  erase(texts: readonly string[]): Promise<boolean>;
  close(): Promise<void>;
}

/** Writes in a thread. Where it dies, what is under way rejects as failing, though it may be stored. */
function inThread(file: string, threads: URL): Writing {
  const thread = threadFor<WriterCall, WriterAnswer>(new URL("writer-thread.js", threads), file);
  thread.start();
  return {
    async write(transactions) {
      const answer = await thread.ask({ ask: "write", transactions });
      return "outcomes" in answer ? answer.outcomes : [];
    },
    async erase(texts) {
      const answer = await thread.ask({ ask: "erase", texts });
      return "isErased" in answer && answer.isErased;
    },
    close: () => thread.end({ ask: "close" }),
  };
}

type Numbered<T> = T & { readonly id: number };

function threadFor<Call, Answer>(code: URL, file: string): WorkerCalls<Numbered<Call>, Numbered<Answer>> {
  return new WorkerCalls(
    code,
    { ...STORE_THREAD, workerData: { file } },
    (cause) => new StoreUnavailableError("failing", { cause: cause ?? new Error("a thread of the store ended") }),
  );
}

/** Reads in a thread, which starts with the first query. */
function readingInThread(file: string, threads: URL): Pick<SqliteDatabase, "readAside" | "close"> {
  const thread = threadFor<ReaderCall, ReaderAnswer>(new URL("reader-thread.js", threads), file);
  return {
    async readAside<R extends object>(text: string, values: readonly SqlValue[]) {
      const answer = await thread.ask({ ask: "read", text, values });
      if ("rows" in answer) return answer.rows as R[];
      throwOutcome(answer.outcome);
      return [];
    },
    close: () => thread.end({ ask: "close" }),
  };
}

/** Writes on this thread, in a later turn of the event loop: who composes in a loop would let no timer and no other request in. */
function onThisThread(connection: Connection): Writing {
  const writer = new Writer(connection);
  return {
    write: async (transactions) => writer.write(transactions),
    erase: async (texts) => connection.sqlite.memory || writer.erase(texts),
    close: async () => {},
  };
}

/** A transaction that waits for its group. */
interface Waiting {
  readonly statements: readonly Statement[];
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A SQLite file. It is read on this thread and written by one writer: transactions of many users that come together are one in the file.
 */
export class SqliteDatabase implements Database {
  readonly #writing: Writing;
  readonly #aside: Pick<SqliteDatabase, "readAside" | "close"> | null;
  readonly #waiting: Waiting[] = [];
  /** The last holder of each user. */
  readonly #holders = new Map<string, Promise<unknown>>();
  #underWay = 0;
  #isDue = false;
  #idle: (() => void)[] = [];
  #isClosed = false;

  /**
   * @param hasOthers whether others write to it, too: another process, or a second store of this one
   * @param threads the folder of the threads' JavaScript files; null: everything runs on this thread
   */
  constructor(
    private readonly connection: Connection,
    private readonly hasOthers: () => boolean,
    threads: URL | null,
  ) {
    const file = connection.sqlite.name;
    this.#writing = threads === null ? onThisThread(connection) : inThread(file, threads);
    this.#aside = threads === null ? null : readingInThread(file, threads);
  }

  get isShared(): boolean {
    return this.hasOthers();
  }

  readonly isAmong = (parameter: string): string => `in (select value from json_each(${parameter}))`;

  readonly read: ReadRows = async (text, values) => this.connection.read(text, values);

  readonly readAside: ReadRows = (text, values) => (this.#aside ?? { readAside: this.read }).readAside(text, values);

  async write(statements: readonly Statement[]): Promise<void> {
    if (this.#isClosed) throw new Error("the store is closed");
    throwOutcome(
      await new Promise<Outcome>((resolve, reject) => {
        this.#waiting.push({ statements, resolve, reject });
        this.#sendSoon();
      }),
    );
  }

  /** Other processes do not write users, so it is this one's holders that wait for each other. */
  async hold<T>(user: User, work: (transaction: UserTransaction) => Promise<T>): Promise<T> {
    const name = JSON.stringify([user.tenant, user.userId]);
    const before = this.#holders.get(name);
    const held = (async () => {
      await before;
      return work({ read: this.read, commit: (statements) => this.write(statements) });
    })();
    const ended = held.then(
      () => undefined,
      () => undefined,
    );
    this.#holders.set(name, ended);
    try {
      return await held;
    } finally {
      if (this.#holders.get(name) === ended) this.#holders.delete(name);
    }
  }

  async erase(texts: readonly string[]): Promise<"erased" | "pending"> {
    return (await this.#writing.erase(texts)) ? "erased" : "pending";
  }

  idle(): Promise<void> {
    if (this.#underWay === 0 && this.#waiting.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  async ping(): Promise<void> {
    this.connection.read("select 1 as one", []);
  }

  /** This connection is the last to close the file. */
  async close(): Promise<void> {
    await this.idle();
    this.#isClosed = true;
    await Promise.all([this.#writing.close(), this.#aside?.close()]);
    this.connection.close();
  }

  /** With what else this iteration of the event loop brings. */
  #sendSoon(): void {
    if (this.#isDue || this.#underWay >= MOST_UNDER_WAY) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      while (this.#underWay < MOST_UNDER_WAY && this.#waiting.length > 0) void this.#send(this.#nextGroup());
    });
  }

  #nextGroup(): readonly Waiting[] {
    let count = 0;
    for (let size = 0; count < this.#waiting.length && count < MOST_TRANSACTIONS && size < MOST_CHARACTERS; count++)
      size += sizeOf(this.#waiting[count]?.statements ?? []);
    return this.#waiting.splice(0, count);
  }

  async #send(group: readonly Waiting[]): Promise<void> {
    this.#underWay++;
    try {
      const outcomes = await this.#writing.write(group.map(({ statements }) => statements));
      for (const [at, { resolve }] of group.entries()) resolve(outcomes[at] ?? null);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
    this.#underWay--;
    if (this.#waiting.length > 0) this.#sendSoon();
    else if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

/** Characters that statements write. */
function sizeOf(statements: readonly Statement[]): number {
  let size = 0;
  for (const { values } of statements) for (const value of values) if (typeof value === "string") size += value.length;
  return size;
}
