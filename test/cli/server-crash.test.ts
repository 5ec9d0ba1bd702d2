import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { surviveServerKills } from "../crash/survive-server-kills.js";
import { testServer } from "../postgres/test-server.js";

const KILLS = 4;
const SEED = 20_260_101;

// The server that is killed is another one: this says whether one runs here.
const server = await testServer();
const missing = server.url === null ? ` (skipped: ${server.missing})` : "";

describe.skipIf(server.url === null)(`instances on one PostgreSQL server, killed at any moment${missing}`, () => {
  const directory = mkdtempSync(join(tmpdir(), "memprefix-crash-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it("have every answer, whichever is asked, go on with every conversation, and keep nothing that one forgot", async () => {
    const survival = await surviveServerKills({ directory, kills: KILLS, seed: SEED, services: 3 });
    expect(survival.killedInstances).toBeGreaterThanOrEqual(KILLS / 2);
    expect(survival.serverKills).toBe(KILLS / 2);
    // That it held is worth nothing where little was done.
    expect(survival.answered).toBeGreaterThan(100);
    expect(survival.repeated).toBeGreaterThan(survival.answered);
    // Some were stored and not heard of; these were asked for again.
    expect(survival.requests).toBeGreaterThanOrEqual(survival.answered);
    const { turns, chats, batches, evictions, reports, forgottenMemories, forgottenUsers } = survival;
    for (const deed of [turns, chats, batches, evictions, reports, forgottenMemories, forgottenUsers])
      expect(deed).toBeGreaterThan(0);
  }, 600_000);
});
