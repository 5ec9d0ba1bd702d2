import Database from "better-sqlite3";
import { collect, structureProblems } from "./check-structure.js";

/** Result of a check of the usage log. Names no users. */
export interface UsageCheck {
  readonly prompts: number;
  /** A line each; empty: none. */
  readonly findings: readonly string[];
}

const missing = (table: string, column: string) =>
  `from usage_prompts p where p.${column} is not null and not exists (select 1 from ${table} o where o.id = p.${column})`;

/** What should be of no row. */
const NONE = {
  "prompts belong to no user": missing("usage_owners", "user_id"),
  "prompts belong to no conversation": missing("usage_owners", "conversation_id"),
  "prompts are counted under no model": missing("usage_groups", "group_id"),
  "names are kept of no prompt": `from usage_owners o where not exists (select 1 from usage_prompts p where p.user_id = o.id)
    and not exists (select 1 from usage_prompts p where p.conversation_id = o.id)`,
};

/**
 * Checks a usage log: SQLite's structure, that prompts and those they belong to fit together, and that as many are kept as are counted.
 * Read-only, in one transaction, so a service may go on recording.
 */
export function checkUsage(file: string): UsageCheck {
  let prompts = 0;
  const findings: string[] = [];
  collect(findings, "file", () => {
    const sqlite = new Database(file, { readonly: true, fileMustExist: true, timeout: 5_000 });
    try {
      const structure = structureProblems(sqlite);
      // What damaged pages say of rows says nothing.
      if (structure.length > 0) return structure;
      const numberOf = (sql: string) => sqlite.prepare<[], number>(sql).pluck().get() ?? 0;
      return sqlite.transaction(() => {
        // Before anything was recorded.
        if (sqlite.pragma("user_version", { simple: true }) === 0) return [];
        prompts = numberOf("select count(*) from usage_prompts");
        const kept = numberOf("select kept from usage_state");
        const wrong = Object.entries(NONE).flatMap(([what, rows]) => {
          const count = numberOf(`select count(*) ${rows}`);
          return count === 0 ? [] : [`${count} ${what}`];
        });
        return kept === prompts ? wrong : [...wrong, `${kept} prompts are counted, and ${prompts} kept`];
      })();
    } finally {
      sqlite.close();
    }
  });
  return { prompts, findings };
}
