import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { storeIn } from "../../../src/store/sql-store.js";
import { openBeside, openOwned } from "../../../src/store/sqlite/open.js";
import { temporaryFolders } from "../../temporary-folders.js";
import { ComposedUsers, conversationId, scopeOf } from "../composed-users.js";
import { builtModule, type Script, startScript } from "./built-store.js";

const newDirectory = temporaryFolders();

/** Opens a directory, says where it listens, and stays until it is told to end. */
const OWNER = `
  import { openOwned } from ${JSON.stringify(builtModule("sqlite/open"))};
  const [, directory, address] = process.argv;
  const { database, announce } = openOwned(directory);
  if (address !== undefined) announce(address);
  await database.read("select 1", []);
  console.log("open");
  process.stdin.once("data", async () => {
    await database.close();
    process.stdin.destroy();
  });
`;

describe("the owner of a data directory", () => {
  const started: Script[] = [];
  afterEach(async () => {
    for (const { child, ended } of started.splice(0)) {
      child.kill("SIGKILL");
      await ended;
    }
  });
  const start = async (...parameters: readonly string[]) => {
    const script = startScript(OWNER, ...parameters);
    started.push(script);
    await script.line();
    return script;
  };
  const refusal = (directory: string) => {
    try {
      openOwned(directory);
      return "it was opened";
    } catch (error) {
      return String(error);
    }
  };

  it("is one process: a second one is told which it is, and what to do", async () => {
    const directory = newDirectory();
    const { child } = await start(directory, "http://localhost:8686");
    expect(refusal(directory)).toBe(
      `DatabaseOpenError: cannot open the database ${directory}: process ${child.pid} uses it; use its service at http://localhost:8686, ` +
        "another MEMPREFIX_DATA_DIR, or PostgreSQL for several processes (MEMPREFIX_DATABASE_URL)",
    );
    const second = startScript(OWNER, directory);
    const { code, stderr } = await second.ended;
    expect([code, stderr.includes(`process ${child.pid} uses it`)]).toEqual([1, true]);
    // By another name it is the same directory.
    const link = join(newDirectory(), "link");
    symlinkSync(directory, link);
    expect(refusal(link)).toContain(`process ${child.pid} uses it`);
    await openBeside(directory).close();
  });

  it("gives it up when it closes, and says nothing more of itself", async () => {
    const directory = newDirectory();
    const { child, ended } = await start(directory, "http://localhost:8686");
    expect(JSON.parse(readFileSync(join(directory, "owner.json"), "utf8"))).toEqual({
      pid: child.pid,
      address: "http://localhost:8686",
    });
    child.stdin?.write("end\n");
    expect(await ended).toMatchObject({ code: 0, stderr: "" });
    expect(existsSync(join(directory, "owner.json"))).toBe(false);
    await openOwned(directory).database.close();
  });

  it("shares it with others of its process, and closes with the last of them", async () => {
    const directory = newDirectory();
    const [first, second] = [openOwned(directory), openOwned(join(directory, "."))];
    expect(first.database).toBe(second.database);
    const ana = scopeOf("ana");
    const [one, two] = [first, second].map(({ database }) => new ComposedUsers(storeIn(database))) as [
      ComposedUsers,
      ComposedUsers,
    ];
    const compose = (users: ComposedUsers, n: number) =>
      users.compose(ana, {
        requestId: `r${n}`,
        question: `Question ${n}?`,
        memories: { [`m${n}`]: `Fact ${n}.` },
        conversation: `c${n % 2}`,
      });
    // Each has its own queue of the user: they wait for each other all the same.
    for (let n = 0; n < 20; n += 2) await Promise.all([compose(one, n), compose(two, n + 1)]);
    const turns = async (users: ComposedUsers, id: string) =>
      (await users.store.loadConversation(await users.numberOf(ana), conversationId(id))).turns.length;
    expect([await turns(one, "c0"), await turns(two, "c1")]).toEqual([10, 10]);
    await one.store.close();
    await compose(two, 20);
    const { ended } = startScript(OWNER, directory);
    expect((await ended).stderr).toContain(`process ${process.pid} uses it`);
    await two.store.close();
    await start(directory);
  });
});
