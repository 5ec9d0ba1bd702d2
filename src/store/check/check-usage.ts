import Database from "better-sqlite3";
import { collect, MOST_FINDINGS, structureProblems } from "./check-database.js";

/** Result of a check of the usage log. Names users. */
export interface UsageCheck {
  readonly prompts: number;
  /** A line each; empty: none. */
  readonly findings: readonly string[];
}

/** Users, or conversations (`kind`), whose sums are not those of their prompts. Its parameter: how many of them at most. */
function wrongSums(column: "user_id" | "conversation_id", kind: "=" | "<>"): string {
  const sum = (of: string) => `coalesce(sum(${of}), 0)`;
  return `select o.tenant, o.name, o.agent from usage_owners o left join usage_prompts p on p.${column} = o.id
    where o.conversation ${kind} '' group by o.id
    having o.prompts <> count(p.id) or o.prompt_tokens <> ${sum("p.prompt_tokens")}
      or o.missed_tokens <> ${sum("coalesce(p.planned_tokens, 0) + coalesce(p.unserved_tokens, 0)")} limit ?`;
}
/** Prompts of which no user is there. */
const OWNERLESS =
  "select count(*) as count from usage_prompts p where not exists (select 1 from usage_owners o where o.id = p.user_id)";

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
        prompts = (sqlite.prepare("select count(*) as count from usage_prompts").get() as { count: number }).count;
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
  type Owner = { readonly tenant: string; readonly name: string; readonly agent: string };
  const found = (sql: string, problem: string) =>
    (sqlite.prepare(sql).all(MOST_FINDINGS) as Owner[]).map(({ tenant, name, agent }) => {
      const names = [tenant, name, ...(agent === "" ? [] : [agent])].map((each) => JSON.stringify(each));
      return `user ${names.join(" ")}: ${problem}`;
    });
  return [
    ...found(wrongSums("user_id", "="), "the sums are not those of the prompts"),
    ...found(wrongSums("conversation_id", "<>"), "a conversation's sums are not those of its prompts"),
  ].slice(0, MOST_FINDINGS);
}
