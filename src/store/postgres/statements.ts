import { createHash } from "node:crypto";
import type pg from "pg";
import type { Statement } from "../database.js";
import { SCHEMA } from "./schema-name.js";

export const TABLES = ["scopes", "changes", "conversations", "turns", "messages", "requests", "prompts", "keys"];

const BEFORE_TABLE = new RegExp(`\\b(from|into|update|join)\\s+(?=(?:${TABLES.join("|")})\\b)`, "gi");

/**
 * Translates statements for the server: adds the schema to tables, since a pooler keeps no `search_path`, and names each text, so that a
 * connection prepares it once.
 */
export class Statements {
  readonly #texts = new Map<string, { readonly name: string; readonly text: string }>();

  /** @param areNamed false behind a pooler, which may prepare a statement in one session and run it in another */
  constructor(private areNamed: boolean) {}

  query({ text, values }: Statement): pg.QueryConfig {
    let known = this.#texts.get(text);
    if (known === undefined) {
      const name = createHash("sha256").update(text).digest("hex").slice(0, 24);
      known = { name, text: text.replace(BEFORE_TABLE, `$1 ${SCHEMA}.`) };
      this.#texts.set(text, known);
    }
    const query = { text: known.text, values: [...values] };
    return this.areNamed ? { name: known.name, ...query } : query;
  }

  /** From now on, nothing is prepared. */
  forgetNames(): void {
    this.areNamed = false;
  }
}
