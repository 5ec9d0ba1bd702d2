import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { SCHEMA, TABLES } from "../../src/store/postgres/statements.js";
import { createDatabase, execute } from "./embedded-server.js";

/** The run's PostgreSQL server, or why there is none: then tests that need it are skipped. */
export type TestServer = { readonly url: string } | { readonly url: null; readonly missing: string };

/** Asks for the run's server; the first to ask has it started. */
export async function testServer(): Promise<TestServer> {
  const response = await fetch(inject("postgresDesk"));
  const answer = (await response.json()) as { readonly url?: string; readonly missing?: string };
  return answer.url === undefined
    ? { url: null, missing: answer.missing ?? "it does not answer" }
    : { url: answer.url };
}

/** Creates an empty database on the run's server; gives its URL. */
export function newDatabase(serverUrl: string): Promise<string> {
  return createDatabase(serverUrl, `test_${randomBytes(8).toString("hex")}`);
}

/**
 * Databases for the tests of a file, one after the other: the first is new, and later ones are the same with empty tables, which takes a tenth
 * of the time of making one.
 */
export function emptyDatabases(serverUrl: string): () => Promise<string> {
  let url: string | null = null;
  return async () => {
    if (url === null) {
      url = await newDatabase(serverUrl);
      return url;
    }
    const tables = [...TABLES].map((table) => `${SCHEMA}.${table}`);
    await execute(url, `truncate ${tables.join(", ")} restart identity`);
    return url;
  };
}
