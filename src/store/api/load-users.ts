import type { ScopeBounds, UserId } from "../../core/index.js";
import { ScopeState } from "../../core/index.js";
import { messageOf } from "../../core/text/thrown.js";
import { type Store, StoreUnavailableError } from "./store.js";

/** Bounds are the service's to enforce. */
const NO_BOUNDS: ScopeBounds = { maxIndexNodes: Number.POSITIVE_INFINITY, maxLoadedConversations: 1 };

/** After so many damaged users the rest are not read. */
const MAX_FINDINGS = 100;

/** What {@link loadEveryUser} read. */
export interface LoadedUsers {
  readonly users: number;
  readonly requests: number;
  /** One line for each user that cannot be loaded. It names the user, never text. */
  readonly findings: readonly string[];
}

/** Loads everything stored, user by user, and reports what cannot be read. A service may run meanwhile. */
export async function loadEveryUser(store: Store): Promise<LoadedUsers> {
  const findings: string[] = [];
  let users = 0;
  let requests = 0;
  for (let after: { tenant: string; userId: UserId } | undefined; ; ) {
    const page = await store.usersAfter(after?.tenant ?? "", after?.userId ?? "");
    for (const { tenant, userId } of page) {
      if (findings.length >= MAX_FINDINGS) return { users, requests, findings };
      users++;
      try {
        requests += await loadUser(store, tenant, userId);
      } catch (error) {
        findings.push(`user ${JSON.stringify(tenant)} ${JSON.stringify(userId)}: ${reasonOf(error)}`);
      }
    }
    after = page.at(-1);
    if (after === undefined) return { users, requests, findings };
  }
}

/** Gives the number of stored requests. */
async function loadUser(store: Store, tenant: string, userId: UserId): Promise<number> {
  for (const scope of await store.scopesOf(tenant, userId)) {
    const { index, published } = new ScopeState((await store.loadScope(scope)).scope, () => 0, NO_BOUNDS);
    index.check();
    published.check();
  }
  const { scopes } = await store.exportUser(tenant, userId, async () => {});
  return scopes.reduce((count, { tables }) => count + (tables["requests"]?.length ?? 0), 0);
}

function reasonOf(error: unknown): string {
  // The store says that something is damaged; its cause says what.
  return messageOf(error instanceof StoreUnavailableError && error.cause instanceof Error ? error.cause : error);
}
