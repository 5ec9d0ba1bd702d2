import { setImmediate as nextTurn } from "node:timers/promises";
import type { OpenDatabase } from "../database/open-database.js";
import {
  JournalCalls,
  type ReadArguments,
  type ReadName,
  type ReadResult,
  type WriteArguments,
  type WriteName,
  type WriteResult,
} from "./journal-calls.js";
import { type Outcome, outcomeOfError, resultOf } from "./journal-outcomes.js";
import { JournalReads } from "./journal-reads.js";
import { JournalWriter } from "./journal-writer.js";

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
