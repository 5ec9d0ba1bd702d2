import type { UserId } from "../../../src/core/index.js";
import type { Database, Statement } from "../../../src/store/database.js";
import type { User } from "../../../src/store/store.js";

export function userNamed(name: string): User {
  return { tenant: "default", userId: name as UserId };
}

export const ana = userNamed("ana");
export const bob = userNamed("bob");

/** Makes the row by which a user is held. */
export function newUser({ tenant, userId }: User): Statement {
  return {
    text: "insert into scopes (tenant, user_id, agent_id, created_at) values ($1, $2, '', 1) on conflict do nothing",
    values: [tenant, userId],
  };
}

/** Counts a commit in a user's row, as every commit of a scope does. */
export function counted({ tenant, userId }: User): Statement {
  return {
    text: "update scopes set version = version + 1 where tenant = $1 and user_id = $2 and agent_id = ''",
    values: [tenant, userId],
  };
}

export const VERSION = "select version from scopes where tenant = $1 and user_id = $2 and agent_id = ''";

/** How many commits of a user are stored; null: the user is not. */
export async function commitsOf(database: Pick<Database, "read">, { tenant, userId }: User): Promise<number | null> {
  const [row] = await database.read<{ version: number }>(VERSION, [tenant, userId]);
  return row?.version ?? null;
}

/** Holds a user for one commit. */
export function commitTo(database: Database, user: User): Promise<void> {
  return database.hold(user, (transaction) => transaction.commit([counted(user)]));
}
