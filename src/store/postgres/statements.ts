import { createHash } from "node:crypto";
import type pg from "pg";
import type { Statement } from "../database.js";
import { SCHEMA } from "./schema-name.js";

export const TABLES = ["scopes", "changes", "conversations", "turns", "messages", "requests", "prompts", "keys"];

const BEFORE_TABLE = new RegExp(`\\b(from|into|update|join)\\s+(?=(?:${TABLES.join("|")})\\b)`, "gi");

/**
 * Statements as the server takes them: tables with their schema, as a pooler between keeps no `search_path`, and a name by which each
 * connection prepares a text once.
 */
export class Statements {
  readonly #texts = new Map<string, { readonly name: string; readonly text: string }>();

  /** @param areNamed false: connections are a pooler's, which may prepare and run one statement on two of the server's */
  constructor(private areNamed: boolean) {}

  /** The driver's form of a statement. */
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

  /** Sends every text with its statement from now on. */
  forgetNames(): void {
    this.areNamed = false;
  }
}
