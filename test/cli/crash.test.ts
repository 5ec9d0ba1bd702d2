import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { surviveKills } from "../crash/survive-kills.js";

const KILLS = 6;
const KILLS_OF_CHATS = 3;
const SEED = 20_260_101;

describe("memprefix serve, killed at any moment", () => {
  const directory = mkdtempSync(join(tmpdir(), "memprefix-crash-"));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it("has every answer, goes on with every conversation, keeps nothing it forgot, and leaves a sound database", async () => {
    const survival = await surviveKills({ directory, kills: KILLS, seed: SEED });
    expect(survival.kills).toBe(KILLS);
    // That it held is worth nothing where little was done.
    expect(survival.answered).toBeGreaterThan(100);
    expect(survival.repeated).toBeGreaterThan(survival.answered);
    expect(survival.requests).toBeGreaterThanOrEqual(survival.answered);
    const { turns, batches, evictions, reports, forgottenMemories, forgottenUsers } = survival;
    for (const deed of [turns, batches, evictions, reports, forgottenMemories, forgottenUsers])
      expect(deed).toBeGreaterThan(0);
  }, 180_000);

  it("holds to the same while users chat, have exchanges kept, and are forgotten before the engine has answered", async () => {
    const own = mkdtempSync(join(directory, "chats-"));
    const survival = await surviveKills({ directory: own, kills: KILLS_OF_CHATS, seed: SEED, chats: true });
    expect(survival.answered).toBeGreaterThan(50);
    const { turns, chats, forgottenMemories, forgottenUsers } = survival;
    for (const deed of [turns, chats, forgottenMemories, forgottenUsers]) expect(deed).toBeGreaterThan(0);
  }, 180_000);
});
