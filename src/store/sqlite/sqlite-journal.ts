/*
 * sqlite/: the journal and the API keys in one SQLite file.
 * In: calls of `JournalDatabase`, on the thread that serves. Out: what is stored, or the errors that it names.
 * `JournalReads` and `JournalWriter` do the work; `InlineJournal` on this thread, `ThreadedJournal` on threads of their own.
 */

import { setImmediate as nextTurn } from "node:timers/promises";
import { StoreUnavailableError } from "../api/store.js";
import type { OpenDatabase } from "../database/open-database.js";
import type { JournalDatabase } from "../journal/journal-database.js";
import { STORE_THREAD, type WithoutId, WorkerCalls } from "../threads/worker-calls.js";
import {
  JournalCalls,
  type Outcome,
  outcomeOfError,
  type ReadArguments,
  type ReadName,
  type ReadResult,
  resultOf,
  type ThreadAnswer,
  type ThreadCall,
  type ThreadTask,
  type WriteArguments,
  type WriteName,
  type WriteResult,
} from "./journal-calls.js";
import { JournalReads } from "./journal-reads.js";
import { JournalWriter } from "./journal-writer.js";
import { WriteGroups } from "./write-groups.js";

/** A thread of a journal. Where it dies, what is under way rejects as failing, though it may be stored. */
class JournalWorker {
  readonly #calls: WorkerCalls<ThreadCall, ThreadAnswer>;
  #isClosed = false;

  /** @param code `journal-thread.js`, as it was built */
  constructor(task: ThreadTask, code: URL) {
    this.#calls = new WorkerCalls(code, { ...STORE_THREAD, workerData: task }, (cause) => {
      return new StoreUnavailableError("failing", { cause: cause ?? new Error("the thread of the journal ended") });
    });
  }

  start(): void {
    this.#calls.start();
  }

  async ask(asked: WithoutId<ThreadCall>): Promise<readonly Outcome[]> {
    if (this.#isClosed) throw new Error("the journal is closed");
    return (await this.#calls.ask(asked)).outcomes;
  }

  /** Ends the thread after everything that it was asked. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#calls.end({ ask: "close" });
  }
}

/**
 * A journal in a file, written by one thread and read by another, so that the calling thread never waits for the disk. Both have
 * connections of their own; this process's first one stays open, as the last of a process has to close the file.
 */
export class ThreadedJournal extends JournalCalls {
  readonly #reader: JournalWorker;
  readonly #writer: JournalWorker;
  readonly #groups: WriteGroups;

  /** @param code what the threads run, where this is not run from where it was built */
  constructor(
    private readonly database: OpenDatabase,
    code = new URL("./journal-thread.js", import.meta.url),
  ) {
    super(database.digests.key);
    const file = database.sqlite.name;
    this.#reader = new JournalWorker({ file, task: "read" }, code);
    this.#writer = new JournalWorker({ file, task: "write" }, code);
    this.#groups = new WriteGroups((calls) => this.#writer.ask({ ask: "write", calls }));
    // The writer also goes on with what an earlier process left to erase.
    this.#writer.start();
    this.#reader.start();
  }

  protected async ask<Name extends ReadName>(name: Name, ...args: ReadArguments<Name>): Promise<ReadResult<Name>> {
    const [outcome] = await this.#reader.ask({ ask: "read", call: { name, args } });
    return resultOf(outcome as Outcome) as ReadResult<Name>;
  }

  protected async tell<Name extends WriteName>(name: Name, ...args: WriteArguments<Name>): Promise<WriteResult<Name>> {
    const outcome = await this.#groups.add({ name, args });
    return resultOf(outcome) as WriteResult<Name>;
  }

  idle = () => this.#groups.idle();

  async erased(): Promise<void> {
    await this.idle();
    const [outcome] = await this.#writer.ask({ ask: "erased" });
    resultOf(outcome as Outcome);
  }

  async close(): Promise<void> {
    await this.idle();
    await Promise.all([this.#reader.close(), this.#writer.close()]);
    this.database.sqlite.close();
  }
}

/**
 * A journal on the calling thread: for databases in memory, commands and tests. Each call is a transaction of its own. A call that writes is
 * answered in a later turn of the event loop, as a thread's is: otherwise who composes in a loop would let no timer and no other request in.
 */
export class InlineJournal extends JournalCalls {
  readonly #reads: JournalReads;
  readonly #writer: JournalWriter;
  /** Settles when the last call that writes has ended. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly database: OpenDatabase) {
    super(database.digests.key);
    this.#reads = new JournalReads(database);
    this.#writer = new JournalWriter(database);
  }

  protected async ask<Name extends ReadName>(name: Name, ...args: ReadArguments<Name>): Promise<ReadResult<Name>> {
    const method = this.#reads[name] as (...args: readonly unknown[]) => unknown;
    const outcome = outcomeOf(() => [{ value: Reflect.apply(method, this.#reads, args) }]);
    return resultOf(outcome) as ReadResult<Name>;
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
 * The journal in a database whose scopes are all in it; closing it closes the database. In a file it has threads of its own; in memory, and
 * run from source, where there is no JavaScript file for a thread to load, it is on this one.
 */
export function journalIn(database: OpenDatabase): JournalDatabase {
  const isSource = import.meta.filename.endsWith(".ts");
  return database.sqlite.memory || isSource ? new InlineJournal(database) : new ThreadedJournal(database);
}
