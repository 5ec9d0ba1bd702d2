import type { UserId } from "../../core/index.js";
import type { Store } from "../../store/api/store.js";
import { inSpan } from "../base/spans.js";
import type { UserTurns } from "./user-turns.js";
import type { WorkingScopes } from "./working-scopes.js";

/** A job's result, and when what it committed is stored. */
export interface Committed<T> {
  readonly result: T;
  readonly settled: Promise<void>;
}

/** Jobs of users that are done when what they committed is stored for good: only then it is the turn of the user's next one. */
export class StoredTurns {
  constructor(
    private readonly turns: UserTurns,
    private readonly scopes: WorkingScopes,
    private readonly store: Store,
  ) {}

  /** Does a user's job in its turn. Rejects where what it committed could not be stored. */
  run<T>(userId: UserId, job: () => Committed<T> | Promise<Committed<T>>): Promise<T> {
    return this.turns.run(userId, async () => {
      const { result, settled } = await job();
      try {
        await inSpan("memstem.commit", {}, () => settled);
      } catch (error) {
        // Memory holds what the database does not.
        this.scopes.clear();
        throw error;
      }
      return result;
    });
  }

  /** To be called in one go with the commit, so that it is that commit's end which is waited for. */
  committed<T>(result: T): Committed<T> {
    const { settled } = this.store;
    // Who waits for it is told, be it later or, because something else failed, never.
    settled.catch(() => {});
    return { result, settled };
  }
}
