import { readFileSync, writeFileSync } from "node:fs";
import { type ClientProgram, USES } from "./client-program.js";
import type { TriedClient } from "./tried-client.js";

const DOCUMENT = new URL("tried-clients.md", import.meta.url);
const ROUTES: Readonly<Record<ClientProgram["api"], string>> = {
  "chat completions": "/v1/chat/completions",
  Responses: "/v1/responses",
  Messages: "/v1/messages",
};
const BEGINNING = "| client | route | names the user by | passed |";

/** The table of clients, and the uses in which each passed every check. */
export function clientTable(clients: readonly TriedClient[]): string {
  const rows = clients.map(rowOf).toSorted();
  return [BEGINNING, "| --- | --- | --- | --- |", ...rows].join("\n");
}

/** A client's row. */
export function rowOf({ packages, versions, api, identity, tried }: TriedClient): string {
  const versioned = packages.map((name, at) => `\`${name}\` ${versions[at]}`).join(", ");
  const passed = USES.filter((use) => {
    const ofUse = tried.filter((one) => one.use === use);
    return ofUse.length > 0 && ofUse.every(({ wrong }) => wrong.length === 0);
  });
  const cells = [versioned, `\`${ROUTES[api]}\``, identity, passed.length === USES.length ? "all" : passed.join(", ")];
  return `| ${cells.join(" | ")} |`;
}

/** The table as the document has it. Throws where it has none. */
export function documentedTable(): string {
  return tableIn(readFileSync(DOCUMENT, "utf8"));
}

/** Puts the table in place of the document's. */
export function writeTable(table: string): void {
  const document = readFileSync(DOCUMENT, "utf8");
  writeFileSync(DOCUMENT, document.replace(tableIn(document), table));
}

function tableIn(document: string): string {
  const from = document.indexOf(BEGINNING);
  if (from === -1) throw new Error("tried-clients.md has no table of clients");
  return document.slice(from, document.indexOf("\n\n", from));
}
