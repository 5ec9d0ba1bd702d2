import type Database from "better-sqlite3";

/** Most commits per transaction: bounds the wait of the first. */
const MOST_COMMITS = 32;

interface OpenGroup {
  commits: number;
  readonly timer: NodeJS.Immediate;
  readonly settled: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: commits in one iteration of the event loop share a transaction, because its begin and end write more pages than a compose.
 * Each commit has a savepoint, so one that throws is undone alone; the group is durable together, when {@link settled} resolves.
 */
export class CommitGroup {
  #open: OpenGroup | null = null;
  readonly #begin: Database.Statement;
  readonly #end: Database.Statement;
  readonly #save: Database.Statement;
  readonly #keep: Database.Statement;
  readonly #undo: Database.Statement;

  /** @param onStored called after each transaction, with the number of commits in it */
  constructor(
    private readonly sqlite: Database.Database,
    private readonly onStored: (commits: number) => void = () => {},
  ) {
    this.#begin = sqlite.prepare("begin immediate");
    this.#end = sqlite.prepare("commit");
    this.#save = sqlite.prepare("savepoint one_commit");
    this.#keep = sqlite.prepare("release one_commit");
    this.#undo = sqlite.prepare("rollback to one_commit");
  }

  /** Runs one commit in the group's transaction. Where it throws, it has changed nothing. */
  run<T>(work: () => T): T {
    const group = this.#open ?? this.#start();
    this.#save.run();
    let result: T;
    try {
      result = work();
    } catch (error) {
      // Some errors, a full disk's for one, roll back the whole transaction.
      if (!this.sqlite.inTransaction) this.#fail(group, error);
      else {
        this.#undo.run();
        this.#keep.run();
      }
      throw error;
    }
    this.#keep.run();
    if (++group.commits >= MOST_COMMITS) this.flush();
    return result;
  }

  /** Begins a transaction where none is open. Throws where the database cannot be written now. */
  begin(): void {
    if (this.#open === null) this.#start();
  }

  /** Commits the transaction now. Throws where that fails: nothing of the group is stored, and `settled` rejects. */
  flush(): void {
    const group = this.#open;
    if (group === null) return;
    try {
      this.#end.run();
    } catch (error) {
      if (this.sqlite.inTransaction) this.sqlite.exec("rollback");
      this.#fail(group, error);
      throw error;
    }
    this.#open = null;
    clearImmediate(group.timer);
    group.resolve();
    this.onStored(group.commits);
  }

  /** Resolves when every commit so far is durable. */
  get settled(): Promise<void> {
    return this.#open?.settled ?? Promise.resolve();
  }

  #start(): OpenGroup {
    this.#begin.run();
    let resolve = () => {};
    let reject: (error: unknown) => void = () => {};
    const settled = new Promise<void>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    // Nobody may be waiting: that is no unhandled rejection.
    settled.catch(() => {});
    const timer = setImmediate(() => {
      try {
        this.flush();
      } catch {
        // `settled` rejects.
      }
    });
    this.#open = { commits: 0, timer, settled, resolve, reject };
    return this.#open;
  }

  #fail(group: OpenGroup, error: unknown): void {
    this.#open = null;
    clearImmediate(group.timer);
    group.reject(error);
  }
}
