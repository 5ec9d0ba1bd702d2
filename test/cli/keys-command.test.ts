import { describe, expect, it } from "vitest";
import { commands } from "./memstem-process.js";

const compose = { user_id: "ada", query: "Tea?", memories: [] };

function post(address: string, key?: string): Promise<Response> {
  return fetch(`${address}/compose`, {
    method: "POST",
    body: JSON.stringify(compose),
    headers: { "content-type": "application/json", ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
  });
}

describe("memstem keys", () => {
  const memstem = commands();

  it("makes, lists and revokes keys while the service runs", async () => {
    const service = await memstem.serve();
    expect((await post(service.address)).status).toBe(200);
    const added = await memstem.run(["keys", "add", "--tenant", "acme", "--label", "the shop"]);
    expect(added).toMatchObject({ code: 0, stderr: "" });
    expect(added.stdout).toMatch(/^mst_[0-9a-f]{12}_[\w-]{43}\n$/);
    const key = added.stdout.trim();
    const id = key.slice(4, 16);
    expect((await post(service.address)).status).toBe(401);
    expect((await post(service.address, key)).status).toBe(200);

    const other = (await memstem.run(["keys", "add", "--tenant", "other"])).stdout.trim();
    const listed = await memstem.run(["keys", "list"]);
    const time = String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`;
    expect(listed.stdout).toMatch(
      new RegExp(`^${id}  acme  made ${time}  valid  the shop\n${other.slice(4, 16)}  other  made ${time}  valid\n$`),
    );
    for (const text of [key, other]) expect(listed.stdout).not.toContain(text.slice(-43));

    expect(await memstem.run(["keys", "revoke", id])).toMatchObject({ code: 0, stdout: "" });
    expect((await post(service.address, key)).status).toBe(401);
    expect((await post(service.address, other)).status).toBe(200);
    expect((await memstem.run(["keys", "list"])).stdout).toMatch(
      new RegExp(`^${id}  acme  made ${time}  revoked ${time}`),
    );
    service.kill("SIGTERM");
    const { stderr } = await service.ended;
    for (const text of [key.slice(-43), other.slice(-43), "acme", "ada"]) expect(stderr).not.toContain(text);
  });

  it.each([
    [["add"], /required option '--tenant <name>' not specified/],
    [["add", "--tenant", ""], /^memstem: tenant: must be/],
    [["add", "--tenant", "a b"], /^memstem: tenant: must be/],
    [["add", "--tenant", "../acme"], /^memstem: tenant: must be/],
    [["add", "--tenant", "acme", "--label", "a\nb"], /^memstem: label: must have no control characters/],
    [["revoke", "nobody"], /^memstem: id: no such key/],
    [["revoke"], /missing required argument 'id'/],
  ])("refuses memstem keys %j", async (args, says) => {
    await memstem.run(["keys", "add", "--tenant", "acme"]);
    const { code, stdout, stderr } = await memstem.run(["keys", ...args]);
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toMatch(says);
  });

  it("says which data directory cannot be used", async () => {
    const environment = { MEMSTEM_DATA_DIR: "/dev/null/data" };
    expect(await memstem.run(["keys", "list"], { environment })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^memstem: cannot open the database/),
    });
  });
});

describe("memstem serve on an address that others can reach", () => {
  const memstem = commands();
  const environment = { MEMSTEM_HOST: "0.0.0.0", MEMSTEM_PORT: "0", MEMSTEM_SOURCE: "none" };

  it("refuses without an API key that holds, and says what to do", async () => {
    const says = /^memstem: MEMSTEM_HOST: without an API key only the loopback is listened on; .*memstem keys add.*\n$/;
    expect(await memstem.run(["serve"], { environment })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(says),
    });
    const key = (await memstem.run(["keys", "add", "--tenant", "acme"])).stdout.trim();
    await memstem.run(["keys", "revoke", key.slice(4, 16)]);
    expect(await memstem.run(["serve"], { environment })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(says),
    });
  });

  it("listens with one", async () => {
    const key = (await memstem.run(["keys", "add", "--tenant", "acme"])).stdout.trim();
    const service = await memstem.serve(environment);
    const address = service.address.replace("0.0.0.0", "127.0.0.1");
    expect((await post(address)).status).toBe(401);
    expect((await post(address, key)).status).toBe(200);
  });
});
