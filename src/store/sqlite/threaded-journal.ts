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
import { type Outcome, resultOf } from "./journal-outcomes.js";
import { JournalWorker } from "./journal-worker.js";
import { WriteGroups } from "./write-groups.js";

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
