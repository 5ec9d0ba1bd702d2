import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { installation } from "./installation.js";
import { type Launched, listening } from "./launch.js";

async function post(address: string, path: string, body: unknown): Promise<{ status: number; text: string }> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(address + path, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: answer.status, text: await answer.text() };
}

const remember = (address: string) => post(address, "/memories", { user_id: "ana", memories: ["Ana likes tea."] });
const compose = (address: string) => post(address, "/compose", { user_id: "ana", query: "Who likes tea?" });

describe("a service that was started while its packages are not all there", () => {
  const installed = installation();
  const RESTART = /its packages could not be loaded \(\w+\): restart the service once they are installed/;

  /** What it says of its source, in its answers and in its log. */
  async function said(service: Launched): Promise<string> {
    const address = await listening(service);
    const kept = await remember(address);
    expect(kept.status).toBe(502);
    expect(JSON.parse(kept.text)).toMatchObject({ detail: expect.stringMatching(RESTART) });
    const composed = await compose(address);
    expect(composed.status).toBe(200);
    expect(JSON.parse(composed.text).warnings).toMatchObject([
      { code: "memory_source_failed", message: expect.stringMatching(RESTART) },
    ]);
    expect(service.stderr()).toMatch(RESTART);
    return kept.text + composed.text + service.stderr().replace(/"dataDir":"[^"]*"/, "");
  }

  it("says what to do, and no path, and works after a restart with all of them", async () => {
    installed.spoil("mem0ai");
    const first = installed.start(["serve"]);
    expect(await said(first)).not.toContain(installed.root);
    first.child.kill();
    await first.ended;
    installed.mend("mem0ai");
    const again = await listening(installed.start(["serve"]));
    expect(await remember(again)).toMatchObject({ status: 201 });
  });
});

describe("a memprefix without the native build of its database", () => {
  const installed = installation();

  const COMMAND = "npm rebuild better-sqlite3 --ignore-scripts=false";

  it.each([[["serve"]], [["keys", "add"]], [["demo"]]])(
    "ends with 1, and names the command that makes it: %j",
    async (args) => {
      mkdirSync(join(installed.root, "data"));
      writeFileSync(join(installed.root, "data/memprefix.db"), "");
      installed.spoil("better-sqlite3", "build");
      const { code, stderr } = await installed.start(args).ended;
      expect(code).toBe(1);
      expect(stderr).toMatch(/^memprefix: .*better-sqlite3 has no native build for this Node\.js; .*\n$/);
      expect(stderr).toContain(COMMAND);
    },
  );

  it("that is for another Node.js says the same", async () => {
    installed.spoil("better-sqlite3", "build/Release/better_sqlite3.node");
    writeFileSync(join(installed.root, "node_modules/better-sqlite3/build/Release/better_sqlite3.node"), "not one");
    const { code, stderr } = await installed.start(["serve"]).ended;
    expect(code).toBe(1);
    expect(stderr).toContain(COMMAND);
  });
});
