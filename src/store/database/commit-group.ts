import type Database from "better-sqlite3";

/** Commits that one transaction takes at most, so that the first of them does not wait for long. */
const MOST_COMMITS = 32;

interface OpenGroup {
  commits: number;
  readonly timer: NodeJS.Immediate;
  readonly settled: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Lets commits that come in one turn of the event loop share a transaction: beginning and ending one writes more pages than a compose
 * does. What one commit did is undone where it throws; what the group did stands or falls together, when {@link settled} says so.
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

  /** Does one commit's work in the group's transaction. What it throws has changed nothing. */
  run<T>(work: () => T): T {
    const group = this.#open ?? this.#start();
    this.#save.run();
    let result: T;
    try {
      result = work();
    } catch (error) {
      // Some failures, of a full disk for one, end the whole transaction.
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

  /** Begins a transaction, where none is under way. Throws where the database cannot be written now. */
  begin(): void {
    if (this.#open === null) this.#start();
  }

  /** Ends the transaction now. Throws where it cannot be stored: then nothing of the group is, and `settled` rejects. */
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

  /** Resolves when all that was committed so far is stored. */
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
    // Whoever waits for it is told; nobody may.
    settled.catch(() => {});
    const timer = setImmediate(() => {
      try {
        this.flush();
      } catch {
        // Told by `settled`.
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
