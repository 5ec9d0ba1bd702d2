import type { UserId } from "../../core/index.js";
import type { DeletionCounts, Store } from "../../store/api/store.js";

/** Watches one user's deletions, by any process, since some counts: work that began then must not restore what was deleted since. */
export class DeletionWatch {
  /** @param since what is known to have been deleted when the work began, or before */
  constructor(
    private readonly store: Pick<Store, "deletionsOf">,
    private readonly tenant: string,
    private readonly userId: UserId,
    readonly since: DeletionCounts,
  ) {}

  /** Watches from now on. */
  static async begin(store: Pick<Store, "deletionsOf">, tenant: string, userId: UserId): Promise<DeletionWatch> {
    return new DeletionWatch(store, tenant, userId, await store.deletionsOf(tenant, userId));
  }

  /** Whether the user or a memory of theirs was deleted since. */
  async isDeleted(): Promise<boolean> {
    return !this.covers(await this.store.deletionsOf(this.tenant, this.userId));
  }

  /** Whether what was planned then may still be sent: nothing was deleted since, as far as the store says. Never rejects. */
  async isSendable(): Promise<boolean> {
    return this.isDeleted().then(
      (isDeleted) => !isDeleted,
      () => false,
    );
  }

  /** Whether the whole user was deleted since. */
  async isUserDeleted(): Promise<boolean> {
    return this.since.users !== (await this.store.deletionsOf(this.tenant, this.userId)).users;
  }

  /** Whether something was deleted between what this knows and these counts; not where it knows more than they do. */
  isBehind({ users, memories }: DeletionCounts): boolean {
    return users > this.since.users || memories > this.since.memories;
  }

  /** Whether nothing had been deleted since by the time of these counts. */
  covers(counts: DeletionCounts): boolean {
    return isSameCount(this.since, counts);
  }
}

/** Whether nothing was deleted between two counts. */
export function isSameCount(a: DeletionCounts, b: DeletionCounts): boolean {
  return a.users === b.users && a.memories === b.memories;
}
