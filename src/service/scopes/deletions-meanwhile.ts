import type { UserId } from "../../core/index.js";
import type { DeletionCounts, Store } from "../../store/api/store.js";

/** One user's deletions by any process, as of a moment: what began then must not bring back what was deleted since. */
export class DeletionWatch {
  readonly #before: DeletionCounts;

  constructor(
    private readonly store: Pick<Store, "deletionsOf">,
    private readonly tenant: string,
    private readonly userId: UserId,
  ) {
    this.#before = this.#counts();
  }

  /** Whether the user was deleted since, or a memory of theirs. */
  get isDeleted(): boolean {
    return !isSameCount(this.#before, this.#counts());
  }

  /** Whether the user was deleted since, with everything. */
  get isUserDeleted(): boolean {
    return this.#before.users !== this.#counts().users;
  }

  #counts(): DeletionCounts {
    return this.store.deletionsOf(this.tenant, this.userId);
  }
}

/** Whether nothing was deleted between two counts. */
export function isSameCount(a: DeletionCounts, b: DeletionCounts): boolean {
  return a.users === b.users && a.memories === b.memories;
}
