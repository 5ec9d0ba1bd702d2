import { readFileSync, writeFileSync } from "node:fs";
import { type ClientProgram, USES, type Use } from "./client-program.js";
import type { TriedClient } from "./tried-client.js";

const DOCUMENT = new URL("../../docs/proxy.md", import.meta.url);
const HEAD: Readonly<Record<Use, string>> = {
  json: "JSON",
  stream: "stream",
  tools: "tools",
  steps: "several steps",
  structured: "by a schema",
};
const ROUTES: Readonly<Record<ClientProgram["api"], string>> = {
  "chat completions": "/v1/chat/completions",
  Responses: "/v1/responses",
  Messages: "/v1/messages",
};
const BEGINNING = `| client | asks | ${USES.map((use) => HEAD[use]).join(" | ")} | named by |`;

/** The table of clients and what was tried with each: yes, where all that was tried went right, no, or a dash for what it has not. */
export function clientTable(clients: readonly TriedClient[]): string {
  const rows = clients.map(rowOf).toSorted();
  return [BEGINNING, `| --- | --- |${" --- |".repeat(USES.length)} --- |`, ...rows].join("\n");
}

/** A client's row. */
export function rowOf({ client, packages, versions, api, identity, tried }: TriedClient): string {
  const versioned = packages.map((name, at) => `\`${name}\` ${versions[at]}`).join(", ");
  const cells = USES.map((use) => {
    const ofUse = tried.filter((one) => one.use === use);
    if (ofUse.length === 0) return "–";
    return ofUse.every(({ wrong }) => wrong.length === 0) ? "yes" : "no";
  });
  return `| ${[`${client} (${versioned})`, `\`${ROUTES[api]}\``, ...cells, identity].join(" | ")} |`;
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
  if (from === -1) throw new Error("docs/proxy.md has no table of clients");
  return document.slice(from, document.indexOf("\n\n", from));
}
