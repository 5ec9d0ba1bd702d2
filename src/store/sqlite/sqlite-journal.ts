/*
 * sqlite/: the journal and the API keys in one SQLite file.
 * In: calls of `JournalDatabase`, on the thread that serves. Out: what is stored, or the errors that it names.
 * `JournalReads` and `JournalWriter` do the work; the writer on this thread (`InlineJournal`) or on one of its own (`ThreadedJournal`).
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
  resultOf,
  type ThreadAnswer,
  type ThreadCall,
  type WriteArguments,
  type WriteName,
  type WriteResult,
} from "./journal-calls.js";
import { JournalWriter } from "./journal-writer.js";
import { WriteGroups } from "./write-groups.js";

/**
 * A journal in a file, written by a thread with a connection of its own. Where the thread dies, what is under way rejects as failing, though
 * it may be stored. This process's first connection, which reads, is the last to close the file.
 */
export class ThreadedJournal extends JournalCalls {
  readonly #writer: WorkerCalls<ThreadCall, ThreadAnswer>;
  readonly #groups = new WriteGroups((calls) => this.#ask({ ask: "write", calls }));
  #isClosed = false;

  /** @param code what the thread runs, where this is not run from where it was built */
  constructor(
    private readonly database: OpenDatabase,
    code = new URL("./journal-thread.js", import.meta.url),
  ) {
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
export class InlineJournal extends JournalCalls {
  readonly #writer: JournalWriter;
  /** Settles when the last call that writes has ended. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(private readonly database: OpenDatabase) {
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
export function journalIn(database: OpenDatabase): JournalDatabase {
  const isSource = import.meta.filename.endsWith(".ts");
  return database.sqlite.memory || isSource ? new InlineJournal(database) : new ThreadedJournal(database);
}
