import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { createMemprefix } from "../../src/index.js";
import { processes } from "./memprefix-process.js";

const INDEX = resolve(import.meta.dirname, "../../dist/index.js");
const environment = { MEMPREFIX_SOURCE: "none", MEMPREFIX_PORT: "0" };
const REQUEST = { user_id: "ada", request_id: "r-1", query: "Tea?", memories: [{ id: "m", memory: "Ada drinks tea" }] };

describe("a data directory that a service uses", () => {
  const memprefix = processes();
  const compose = async (address: string) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${address}/compose`, { method: "POST", headers, body: JSON.stringify(REQUEST) });
    expect(answer.status).toBe(200);
    return answer.text();
  };

  it("is no other process's to write: each ends with 1 and says what to do, and the service goes on", async () => {
    const service = await memprefix.serve();
    const answer = await compose(service.address);
    const refused = new RegExp(
      `^memprefix: cannot open the database ${memprefix.dataDir}: process \\d+ uses it; use its service at ${service.address}, another MEMPREFIX_DATA_DIR, or PostgreSQL for several processes \\(MEMPREFIX_DATABASE_URL\\)\n$`,
    );
    const ended = await memprefix.run(["serve"], { environment });
    expect(ended).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(refused) });
    const options = JSON.stringify({ dataDir: memprefix.dataDir, source: { kind: "none" } });
    const program = `import { createMemprefix } from ${JSON.stringify(INDEX)}; await createMemprefix(${options});`;
    await expect(promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program])).rejects.toThrow(
      `DatabaseOpenError: cannot open the database ${memprefix.dataDir}: process `,
    );
    expect(await compose(service.address)).toBe(answer);
  });

  it("is for other processes to read, and to make keys in", async () => {
    const { address } = await memprefix.serve();
    await compose(address);
    const run = (...args: string[]) => memprefix.run(args, { environment });
    expect((await run("doctor")).stdout).toMatch(/^store +ok +1 requests of 1 users load$/m);
    expect((await run("keys", "add")).stdout).toMatch(/^mst_/);
    expect((await fetch(`${address}/users/ada/scopes`)).status).toBe(401);
  });

  it("is the next process's as soon as the service is dead, and a program's two services share it", async () => {
    const service = await memprefix.serve();
    const answer = await compose(service.address);
    service.kill("SIGKILL");
    await service.ended;
    const open = () => createMemprefix({ dataDir: memprefix.dataDir, source: { kind: "none" } });
    const [one, two] = [await open(), await open()];
    const request = { userId: "ada", requestId: "r-1", query: "Tea?", memories: REQUEST.memories };
    const { messages } = JSON.parse(answer) as { messages: unknown };
    expect((await one.compose(request)).messages).toEqual(messages);
    await one.close();
    const inUse = await memprefix.run(["serve"], { environment });
    expect(inUse.stderr).toContain(`process ${process.pid} uses it; use the service that it runs, another`);
    expect((await two.compose(request)).messages).toEqual(messages);
    await two.close();
    expect(await compose((await memprefix.serve()).address)).toBe(answer);
  });
});
