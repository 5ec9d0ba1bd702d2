import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { commands } from "./memprefix-command.js";

const compose = { user_id: "olga", query: "Tea?", memories: [] };

function post(address: string, key?: string, body: object = compose): Promise<Response> {
  return fetch(`${address}/compose`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
  });
}

describe("memprefix keys", () => {
  const memprefix = commands();

  it("makes, lists and revokes keys while the service runs", async () => {
    const service = await memprefix.serve();
    expect((await post(service.address)).status).toBe(200);
    const added = await memprefix.run(["keys", "add", "--tenant", "acme", "--label", "the shop"]);
    expect(added.code).toBe(0);
    expect(added.stdout).toMatch(/^mst_[0-9a-f]{12}_[\w-]{43}\n$/);
    const key = added.stdout.trim();
    const id = key.slice(4, 16);
    expect((await post(service.address)).status).toBe(401);
    expect((await post(service.address, key)).status).toBe(200);

    const other = (await memprefix.run(["keys", "add", "--tenant", "other"])).stdout.trim();
    const listed = await memprefix.run(["keys", "list"]);
    const time = String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`;
    expect(listed.stdout).toMatch(
      new RegExp(`^${id}  acme  made ${time}  valid  the shop\n${other.slice(4, 16)}  other  made ${time}  valid\n$`),
    );
    for (const text of [key, other]) expect(listed.stdout).not.toContain(text.slice(-43));

    expect(await memprefix.run(["keys", "revoke", id])).toMatchObject({ code: 0, stdout: "" });
    expect((await post(service.address, key)).status).toBe(401);
    expect((await post(service.address, other)).status).toBe(200);
    expect((await memprefix.run(["keys", "list"])).stdout).toMatch(
      new RegExp(`^${id}  acme  made ${time}  revoked ${time}`),
    );
    service.kill("SIGTERM");
    const { stderr } = await service.ended;
    for (const text of [key.slice(-43), other.slice(-43), "acme", "olga"]) expect(stderr).not.toContain(text);
  });

  it.each([
    [["add", "--tenant", ""], /^memprefix: tenant: must be/],
    [["add", "--tenant", "a b"], /^memprefix: tenant: must be/],
    [["add", "--tenant", "../acme"], /^memprefix: tenant: must be/],
    [["add", "--tenant", "acme", "--label", "a\nb"], /^memprefix: label: must have no control characters/],
    [["revoke", "nobody"], /^memprefix: id: no such key/],
    [["revoke"], /missing required argument 'id'/, 2],
  ])("refuses memprefix keys %j", async (args, says, ends = 1) => {
    await memprefix.run(["keys", "add", "--tenant", "acme"]);
    const { code, stdout, stderr } = await memprefix.run(["keys", ...args]);
    expect(code).toBe(ends);
    expect(stdout).toBe("");
    expect(stderr).toMatch(says);
  });

  it("says of a data directory of another schema that it is not read, and what to do, and changes nothing in it", async () => {
    await memprefix.run(["keys", "add", "--tenant", "acme"]);
    const file = join(memprefix.dataDir, "memprefix.db");
    const sqlite = new Database(file);
    sqlite.exec("update __drizzle_migrations set created_at = 1790000000000");
    sqlite.close();
    const before = readFileSync(file);
    expect(await memprefix.run(["keys", "list"])).toEqual({
      code: 1,
      stdout: "",
      stderr: `memprefix: cannot open the database ${file}: another version of memprefix wrote it; use that version, or an empty data directory\n`,
    });
    expect(readFileSync(file)).toEqual(before);
  });
});

describe("memprefix keys add", () => {
  const memprefix = commands();

  it("says of another tenant what its users are called in Mem0, what is not found so, and what to do", async () => {
    const { code, stdout, stderr } = await memprefix.run(["keys", "add", "--tenant", "acme"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^mst_[0-9a-f]{12}_[\w-]{43}\n$/);
    expect(
      stderr
        .split("\n")
        .slice(0, -1)
        .every((line) => line.startsWith("memprefix: ")),
    ).toBe(true);
    expect(stderr).toContain("ana is searched for as memprefix/acme/ana");
    expect(stderr).toMatch(/under plain user ids.* are not found with this key/);
    expect(stderr).toContain("memprefix keys add, without --tenant");
    expect(stderr).not.toContain(stdout.trim().slice(-43));
  });
});

describe("memprefix serve with MEMPREFIX_API_KEY", () => {
  const memprefix = commands();
  const KEY = "Kk7-not-of-our-form-but-long-enough-for-it";
  const environment = { MEMPREFIX_API_KEY: KEY };

  it("listens where others can reach it, with that key from the start, and never shows it", async () => {
    const service = await memprefix.serve({ ...environment, MEMPREFIX_HOST: "0.0.0.0", MEMPREFIX_LOG_LEVEL: "debug" });
    const address = service.address.replace("0.0.0.0", "127.0.0.1");
    for (const wrong of [undefined, `${KEY}x`, KEY.slice(0, -1), KEY.toLowerCase(), "x".repeat(10_000)]) {
      const answer = await post(address, wrong);
      expect(answer.status, wrong).toBe(401);
      expect(await answer.text()).not.toContain(KEY);
    }
    expect((await post(address, KEY)).status).toBe(200);
    const metrics = await fetch(`${address}/metrics`, { headers: { "x-api-key": KEY } });
    expect(await metrics.text()).not.toContain(KEY);
    // Beside it, keys of the data directory hold as ever.
    const other = (await memprefix.run(["keys", "add", "--tenant", "acme"])).stdout.trim();
    expect((await post(address, other)).status).toBe(200);
    const listed = await memprefix.run(["keys", "list"], { environment });
    service.kill("SIGTERM");
    const { stdout, stderr } = await service.ended;
    for (const text of [
      stdout,
      stderr,
      listed.stdout,
      (await memprefix.run(["serve", "--help"], { environment })).stdout,
    ])
      expect(text).not.toContain(KEY);
    for (const name of readdirSync(memprefix.dataDir))
      expect(readFileSync(join(memprefix.dataDir, name)).includes(KEY), name).toBe(false);
  });

  it("opens the tenant default, with the same cache salt after a restart", async () => {
    const body = { ...compose, user_id: "ana", request_id: "r-1", engine: "vllm" };
    const first = await memprefix.serve(environment);
    const before = (await (await post(first.address, KEY, body)).json()) as { readonly messages: readonly object[] };
    expect(before).toMatchObject({ engine: { fields: { cache_salt: expect.stringMatching(/./) } } });
    first.kill("SIGTERM");
    await first.ended;
    const again = await memprefix.serve(environment);
    const stored = (await memprefix.run(["keys", "add"])).stdout.trim();
    expect(await (await post(again.address, KEY, body)).json()).toEqual(before);
    expect(await (await post(again.address, stored, body)).json()).toMatchObject({ messages: before.messages });
    const acme = (await memprefix.run(["keys", "add", "--tenant", "acme"])).stdout.trim();
    expect(await (await post(again.address, acme, body)).json()).not.toEqual(before);
  });
});

describe("memprefix serve on an address that others can reach", () => {
  const memprefix = commands();
  const environment = { MEMPREFIX_HOST: "0.0.0.0", MEMPREFIX_PORT: "0", MEMPREFIX_SOURCE: "none" };

  it("refuses without an API key that holds, and says what to do", async () => {
    const says =
      /^memprefix: MEMPREFIX_HOST: without an API key only the loopback is listened on; .*memprefix keys add.*\n$/;
    expect(await memprefix.run(["serve"], { environment })).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(says),
    });
    const key = (await memprefix.run(["keys", "add", "--tenant", "acme"])).stdout.trim();
    await memprefix.run(["keys", "revoke", key.slice(4, 16)]);
    expect(await memprefix.run(["serve"], { environment })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(says),
    });
  });
});
