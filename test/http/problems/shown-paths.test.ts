import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { problemOf } from "../../../src/http/problems/problem.js";
import { openEmbeddedMem0 } from "../../../src/memory/embedded-mem0.js";
import { MemorySourceError } from "../../../src/memory/memory-source.js";
import { StoreUnavailableError, UpstreamError } from "../../../src/service/base/errors.js";
import { DatabaseOpenError } from "../../../src/store/open-error.js";
import { servedApp } from "../server/served-app.js";

const PATH = "/srv/secret-place/data/vectors.db";
const CAUSE = `ENOENT: no such file or directory, open '${PATH}', imported from ${PATH}`;

/** Errors of every class that a request may end with, each with a path in what it was made of. */
const errors: readonly (readonly [string, unknown])[] = [
  ["a source that cannot be reached", new MemorySourceError("embedded", { kind: "unreachable", cause: CAUSE })],
  ["a source whose answer cannot be read", new MemorySourceError("embedded", { kind: "unreadable", cause: CAUSE })],
  ["a source that refuses", new MemorySourceError("mem0-rest", { kind: "refused", status: 500, body: CAUSE })],
  ["an engine that cannot be reached", new UpstreamError("http://e/v1", { kind: "unreachable", cause: CAUSE })],
  ["an engine that breaks off", new UpstreamError("http://e/v1", { kind: "broken", cause: CAUSE })],
  ["a store that fails", new StoreUnavailableError("failing", { cause: new Error(CAUSE) })],
  ["a database that cannot be opened", new DatabaseOpenError(PATH, CAUSE)],
  ["any other", Object.assign(new Error(CAUSE), { code: "ENOENT", path: PATH })],
  ["a text", CAUSE],
];

describe("what is said of an error", () => {
  it.each(errors)("shows no path: %s", (_what, error) => {
    const problem = problemOf(error);
    expect(JSON.stringify(problem)).not.toContain("secret-place");
  });
});

describe("an embedded Mem0 whose files are not what they should be", () => {
  const app = servedApp({ source: (dataDir) => openEmbeddedMem0({ dataDir }) });

  it.each([
    ["a directory in place of a database", (mem0: string) => mkdirSync(join(mem0, "vectors.db"))],
    ["a directory in place of its settings", (mem0: string) => mkdirSync(join(mem0, "config.json"))],
    ["a database that is none", (mem0: string) => writeFileSync(join(mem0, "vectors.db"), "x".repeat(10_000))],
  ])("shows no path in any answer: %s", async (_what, spoil) => {
    // Mem0 prints it.
    vi.spyOn(console, "error").mockImplementation(() => {});
    spoil(join(app.dataDir, "mem0"));
    const answers = [
      await app.send("POST", "/memories", { user_id: "ana", memories: ["Ana likes tea"] }),
      await app.send("POST", "/compose", { user_id: "ana", query: "Tea?" }),
      await app.send("GET", "/users/ana/export"),
      await app.send("DELETE", "/users/ana/memories/m-1"),
      await app.send("DELETE", "/users/ana"),
    ];
    for (const { text } of answers) expect(text).not.toContain(app.dataDir);
  });
});
