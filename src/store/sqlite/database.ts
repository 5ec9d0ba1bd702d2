import type { WorkerOptions } from "node:worker_threads";
import { WorkerCalls } from "../../threads/worker-calls.js";
import type { Database, ReadRows, SqlValue, Statement, UserTransaction } from "../database.js";
import { StoreUnavailableError, type User } from "../store.js";
import type { Connection } from "./connection.js";
import { type FileAnswer, type FileCall, type Outcome, type ThreadData, throwOutcome, Writer } from "./writer.js";

/** Groups sent to the writer: the one it writes and the next, so that it never waits for this thread. */
const MOST_UNDER_WAY = 2;
/** Most transactions of a group … */
const MOST_TRANSACTIONS = 256;
/** … and the characters they write after which none are added. Bounds the wait of the first. */
const MOST_CHARACTERS = 4_000_000;

/**
 * Heap in megabytes: room for a group of commits or a large scope. The young generation stays small, because it is never given back. Options of
 * this process, such as a larger heap, are not inherited.
 */
const STORE_THREAD = {
  resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 8, stackSizeMb: 1 },
  execArgv: [],
  // Otherwise Node closes searched files with the thread, and so releases SQLite's locks (see `writer.ts`).
  trackUnmanagedFds: false,
} as const satisfies WorkerOptions;

interface FileWork {
  ask(call: FileCall): Promise<FileAnswer>;
  close(): Promise<void>;
}

type Numbered<T> = T & { readonly id: number };

/** A thread, started by its first call. If it dies, running calls reject as failing, though they may be stored. */
function inThread(file: string, threads: URL, purpose: ThreadData["purpose"]): FileWork {
  const thread = new WorkerCalls<Numbered<FileCall>, Numbered<FileAnswer>>(
    new URL("thread.js", threads),
    { ...STORE_THREAD, workerData: { file, purpose } satisfies ThreadData },
    (cause) => new StoreUnavailableError("failing", { cause: cause ?? new Error("a thread of the store ended") }),
  );
  if (purpose === "write") thread.start();
  return { ask: (call) => thread.ask(call), close: () => thread.end({ ask: "close" }) };
}

/** This thread, in a later turn of the event loop: otherwise a loop of composes would block timers and other requests. */
function onThisThread(connection: Connection): FileWork {
  const writer = new Writer(connection);
  return { ask: async (call) => writer.answer(call), close: async () => {} };
}

interface Waiting {
  readonly statements: readonly Statement[];
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/** A SQLite file, read on this thread and written by one writer. Concurrent transactions of many users become one in the file. */
export class SqliteDatabase implements Database {
  readonly #writing: FileWork;
  readonly #aside: FileWork;
  readonly #waiting: Waiting[] = [];
  readonly #holders = new Map<string, Promise<unknown>>();
  #underWay = 0;
  #isDue = false;
  #idle: (() => void)[] = [];
  #isClosed = false;

  /**
   * @param hasOthers whether others write too: another process, or a second store in this one
   * @param threads the folder of the threads' JavaScript files; null: everything runs on this thread
   */
  constructor(
    private readonly connection: Connection,
    private readonly hasOthers: () => boolean,
    threads: URL | null,
  ) {
    const file = connection.sqlite.name;
    this.#writing = threads === null ? onThisThread(connection) : inThread(file, threads, "write");
    this.#aside = threads === null ? this.#writing : inThread(file, threads, "read");
  }

  get isShared(): boolean {
    return this.hasOthers();
  }

  readonly isAmong = (parameter: string): string => `in (select value from json_each(${parameter}))`;

  readonly read: ReadRows = async (text, values) => this.connection.read(text, values);

  readonly readAside: ReadRows = (text, values) => this.#query(this.#aside, text, values);

  readonly lockFree = "";

  readonly take: ReadRows = (text, values) => this.#query(this.#writing, text, values);

  async write(statements: readonly Statement[]): Promise<void> {
    if (this.#isClosed) throw new Error("the store is closed");
    throwOutcome(
      await new Promise<Outcome>((resolve, reject) => {
        this.#waiting.push({ statements, resolve, reject });
        this.#sendSoon();
      }),
    );
  }

  /** Other processes do not write users, so only this one's holders wait for each other. */
  async hold<T>(user: User, work: (transaction: UserTransaction) => Promise<T>): Promise<T> {
    const name = JSON.stringify([user.tenant, user.userId]);
    const transaction = { read: this.read, commit: (statements: readonly Statement[]) => this.write(statements) };
    const held = (this.#holders.get(name) ?? Promise.resolve()).then(() => work(transaction));
    const ended = held.catch(() => undefined);
    this.#holders.set(name, ended);
    try {
      return await held;
    } finally {
      if (this.#holders.get(name) === ended) this.#holders.delete(name);
    }
  }

  async erase(texts: readonly string[]): Promise<"erased" | "pending"> {
    const { isErased } = await this.#writing.ask({ ask: "erase", texts });
    return isErased === true ? "erased" : "pending";
  }

  /** This connection closes the file last. */
  async close(): Promise<void> {
    if (this.#underWay > 0 || this.#waiting.length > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
    this.#isClosed = true;
    await Promise.all([this.#writing.close(), this.#aside.close()]);
    this.connection.close();
  }

  async #query<R extends object>(thread: FileWork, text: string, values: readonly SqlValue[]): Promise<R[]> {
    const { rows = [], outcomes = [] } = await thread.ask({ ask: "read", text, values });
    throwOutcome(outcomes[0] ?? null);
    return rows as R[];
  }

  /** Together with what else arrives in this turn of the event loop. */
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
      const transactions = group.map(({ statements }) => statements);
      const { outcomes = [] } = await this.#writing.ask({ ask: "write", transactions });
      for (const [at, { resolve }] of group.entries()) resolve(outcomes[at] ?? null);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
    this.#underWay--;
    if (this.#waiting.length > 0) this.#sendSoon();
    else if (this.#underWay === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

function sizeOf(statements: readonly Statement[]): number {
  let size = 0;
  for (const { values } of statements) for (const value of values) if (typeof value === "string") size += value.length;
  return size;
}
