import { EventEmitter } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { run } from "../../src/cli/command-line.js";
import { composeResult } from "../../src/http/contracts/compose-contract.js";
import { commands, type Ended } from "./memprefix-command.js";
import type { Listening } from "./own-directories.js";

const SECRET = "Ada hides the key under the third flower pot";
const QUESTION = "Where on earth did she put it?";
const ANSWER = "I would rather not say";

function post(service: Listening<Ended>, path: string, body: unknown): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return fetch(service.address + path, { method: "POST", body: text, headers: { "content-type": "application/json" } });
}

describe("memprefix serve", () => {
  const memprefix = commands();

  it("listens on the loopback, keeps its files in the data directory and nothing elsewhere", async () => {
    const service = await memprefix.serve();
    expect(service.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await (await fetch(`${service.address}/healthz`)).json()).toEqual({
      status: "ok",
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      source: null,
    });
    expect(readdirSync(memprefix.dataDir).every((name) => /^(memprefix|owner)\.(db|json)/.test(name))).toBe(true);
    expect(memprefix.leftBehind).toEqual([]);
  });

  it("stops at a signal that comes while it says that it listens", async () => {
    const signals = new EventEmitter();
    const heard: boolean[] = [];
    const stdout = new Writable({
      write(line, _encoding, done) {
        if (String(line).includes("listens on")) heard.push(signals.emit("SIGTERM"));
        done();
      },
    });
    const env = {
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_PORT: "0",
      MEMPREFIX_DATA_DIR: join(memprefix.root, "signalled"),
    };
    const code = await new Promise<number>((exit) => {
      void run(["serve"], env, { stdin: Readable.from([]), stdout, stderr: new PassThrough(), signals, exit });
    });
    expect({ heard, code }).toEqual({ heard: [true], code: 0 });
  });

  it("searches embedded Mem0 unless told otherwise", async () => {
    const service = await memprefix.serve({ MEMPREFIX_SOURCE: "" });
    expect(await (await fetch(`${service.address}/healthz`)).json()).toMatchObject({ source: "embedded" });
    expect((await post(service, "/memories", { user_id: "ada", memories: [SECRET] })).status).toBe(201);
    const answer = await post(service, "/compose", { user_id: "ada", query: "Where does Ada hide the key?" });
    expect(composeResult.parse(await answer.json()).messages[0]?.["content"]).toContain(SECRET);
    expect(memprefix.leftBehind).toEqual([]);
  });

  it("takes up where the process before it stopped", async () => {
    const at = { user_id: "ada", conversation_id: "c" };
    const asked = { role: "user", content: QUESTION };
    const first = await memprefix.serve();
    const given = await post(first, "/compose", {
      ...at,
      messages: [asked],
      memories: [{ id: "m-1", memory: SECRET }],
    });
    const { messages } = composeResult.parse(await given.json());
    first.kill("SIGINT");
    expect(await first.ended).toMatchObject({ code: 0 });
    const second = await memprefix.serve();
    const history = [asked, { role: "assistant", content: ANSWER }, asked];
    const next = await post(second, "/compose", {
      ...at,
      messages: history,
      memories: [{ id: "m-1", memory: SECRET }],
    });
    expect(composeResult.parse(await next.json()).messages.slice(0, 1)).toEqual(messages);
  });
});
