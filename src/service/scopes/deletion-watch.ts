import type { UserId } from "../../core/index.js";
import type { DeletionCounts, Store } from "../../store/api/store.js";

/** Watches one user's deletions, by any process, from its construction: work that began then must not restore what was deleted since. */
export class DeletionWatch {
  readonly #before: DeletionCounts;

  constructor(
    private readonly store: Pick<Store, "deletionsOf">,
    private readonly tenant: string,
    private readonly userId: UserId,
  ) {
    this.#before = this.#counts();
  }

  /** Whether the user or a memory of theirs was deleted since. */
  get isDeleted(): boolean {
    return !isSameCount(this.#before, this.#counts());
  }

  /** Whether the whole user was deleted since. */
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
