import Database from "better-sqlite3";
import { collect, MOST_FINDINGS, structureProblems } from "./check-structure.js";

/** Result of a check of the usage log. Names users. */
export interface UsageCheck {
  readonly prompts: number;
  /** A line each; empty: none. */
  readonly findings: readonly string[];
}

/** The sums of a user or a conversation that are not those of its prompts. Its parameter: how many of them at most. */
function wrongSums(table: "users" | "conversations", column: "user" | "conversation"): string {
  const sum = (of: string) => `coalesce(sum(${of}), 0)`;
  return `select r.id from ${table} r left join prompts p on p.${column} = r.id group by r.id
    having r.prompts <> count(p.id) or r.prompt_tokens <> ${sum("p.prompt_tokens")}
      or r.missed_tokens <> ${sum("coalesce(p.planned_tokens, 0) + coalesce(p.unserved_tokens, 0)")} limit ?`;
}
const USER_NAMES = `select t.name as tenant, u.name, u.agent from users u join tenants t on t.id = u.tenant where u.id = ?`;
const OWNER = "select user from conversations where id = ?";
/** Prompts of which no user or tenant is there. */
const OWNERLESS = `select count(*) as count from prompts p where not exists (select 1 from users u where u.id = p.user)
  or not exists (select 1 from tenants t where t.id = p.tenant)`;

/**
 * Checks a usage log: SQLite's structure, and that the sums of users and conversations are those of their prompts. Read-only, in one
 * transaction, so a service may go on recording.
 */
export function checkUsage(file: string): UsageCheck {
  let prompts = 0;
  const findings: string[] = [];
  collect(findings, "file", () => {
    const sqlite = new Database(file, { readonly: true, fileMustExist: true, timeout: 5_000 });
    try {
      const structure = structureProblems(sqlite);
      // What damaged pages say of sums says nothing.
      if (structure.length > 0) return structure;
      return sqlite.transaction(() => {
        // Before anything was recorded.
        if (sqlite.pragma("user_version", { simple: true }) === 0) return [];
        prompts = (sqlite.prepare("select count(*) as count from prompts").get() as { count: number }).count;
        const ownerless = (sqlite.prepare(OWNERLESS).get() as { count: number }).count;
        return [...(ownerless === 0 ? [] : [`${ownerless} prompts belong to no user`]), ...sumProblems(sqlite)];
      })();
    } finally {
      sqlite.close();
    }
  });
  return { prompts, findings };
}

function sumProblems(sqlite: Database.Database): string[] {
  const names = sqlite.prepare(USER_NAMES);
  const nameOf = (user: number): string => {
    const { tenant, name, agent } = names.get(user) as { tenant: string; name: string; agent: string };
    return `user ${[tenant, name, ...(agent === "" ? [] : [agent])].map((each) => JSON.stringify(each)).join(" ")}`;
  };
  const wrong = (sql: string) => (sqlite.prepare(sql).all(MOST_FINDINGS) as { id: number }[]).map(({ id }) => id);
  const users = wrong(wrongSums("users", "user")).map((id) => `${nameOf(id)}: the sums are not those of the prompts`);
  const owner = sqlite.prepare(OWNER);
  const conversations = wrong(wrongSums("conversations", "conversation")).map(
    (id) => `${nameOf((owner.get(id) as { user: number }).user)}: a conversation's sums are not those of its prompts`,
  );
  return [...users, ...conversations].slice(0, MOST_FINDINGS);
}
