import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { VERSION } from "../../src/cli/package.js";
import { batchResult } from "../../src/http/contracts/batch-contract.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { SAMPLE } from "./eval-directory.js";
import { launch, MAIN } from "./launch.js";
import { processes } from "./memprefix-process.js";

/*
 * The built command line in processes of its own: every command once (but `demo`, which the README runs), and what only a process shows. What
 * commands do is tested in the process of the tests, on the same function that the executable calls.
 */

it("`npx memprefix` runs in a clone that was built: its file may be executed", async () => {
  const { stdout } = await promisify(execFile)(MAIN, ["--version"]);
  expect(stdout).toBe(`${VERSION}\n`);
});

const LOCOMO = ["--data", SAMPLE, "--k", "1", "--limit", "1", "--policies", "readme"];

interface Case {
  readonly args: readonly string[];
  readonly code?: number;
  readonly environment?: Readonly<Record<string, string>>;
  readonly stdout?: RegExp;
  readonly stderr?: RegExp;
}

describe("built commands, one after the other:", () => {
  const root = mkdtempSync(join(tmpdir(), "memprefix-built-"));
  afterAll(() => rmSync(root, { recursive: true }));
  const at = (name: string) => join(root, name);
  const own = { PATH: process.env["PATH"] ?? "", HOME: root, TMPDIR: root, MEMPREFIX_SOURCE: "none" };

  it.each<Case>([
    { args: ["keys", "add"], stdout: /^mst_[0-9a-f]{12}_[\w-]{43}\n$/ },
    { args: ["keys", "list"], stdout: /^[0-9a-f]{12} {2}default {2}made / },
    { args: ["keys", "revoke", "nobody"], code: 1, stderr: /^memprefix: id: no such key/ },
    { args: ["doctor"], stdout: /^store +ok +0 requests of 0 users load\n/ },
    { args: ["eval", "locomo", ...LOCOMO, "--out", at("out")], stdout: /report\.md/ },
    {
      args: ["eval", "longmemeval", ...LOCOMO, "--out", at("other")],
      code: 1,
      stderr: /^memprefix: not a LongMemEval/,
    },
    { args: ["replay", "--trace", at("out/traces/sample-1-k1.json"), "--k", "1"], stdout: /^\| policy / },
  ])("$args, in a process of its own", async ({ args, code = 0, stdout = /^$/, stderr = /^$/ }) => {
    const { child, ended } = launch(args, { ...own, MEMPREFIX_DATA_DIR: at("data") });
    child.stdin.end();
    const outcome = await ended;
    expect(outcome.stderr).toMatch(stderr);
    expect(outcome.stdout).toMatch(stdout);
    expect(outcome.code).toBe(code);
  });
});

describe("built memprefix serve, in a process", () => {
  const memprefix = processes();

  it("logs on standard error, and ends with 0 when it was told to stop and has answered", async () => {
    const service = await memprefix.serve();
    expect((await fetch(`${service.address}/healthz`)).status).toBe(200);
    service.kill("SIGTERM");
    const { code, signal, stdout, stderr } = await service.ended;
    expect({ code, signal }).toEqual({ code: 0, signal: null });
    expect(stdout.split("\n")[0]).toBe(`memprefix ${VERSION} listens on ${service.address}`);
    const messages = stderr
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { msg: string }).msg);
    // What was not recorded yet of the start may be a fault behind them.
    expect(messages.slice(0, 3)).toEqual(["listening", "request", "stopping"]);
  });

  const engine = openAiEngine();

  it("ends with 1 where its port is taken, though it follows events of the engine's cache", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const environment = {
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_PORT: String((taken.address() as AddressInfo).port),
      MEMPREFIX_UPSTREAM_URL: engine.url,
      MEMPREFIX_KV_EVENTS: "tcp://127.0.0.1:9",
    };
    const { code, stderr } = await memprefix.run(["serve"], { environment });
    taken.close();
    expect(stderr).toContain("events of the engine's cache are followed");
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^memprefix: .*address already in use/m),
    });
  });

  it.each([
    ["SIGTERM", "SIGTERM"],
    ["SIGINT", "SIGTERM"],
  ] as const)("ends at once where it is told again: %s, %s", async (first, second) => {
    engine.behave((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"choices":[{"index":0,"delta":{"content":"first"}}]}\n\n');
    });
    const service = await memprefix.serve({ MEMPREFIX_UPSTREAM_URL: engine.url });
    const chat = { stream: true, user: "ada", messages: [{ role: "user", content: "Tea?" }] };
    await fetch(`${service.address}/v1/chat/completions`, { method: "POST", body: JSON.stringify(chat) });
    service.kill(first);
    await expect.poll(() => service.stderr).toContain('"stopping"');
    service.kill(second);
    expect(await service.ended).toMatchObject({ code: 1 });
  });
});

describe("built memprefix serve, given a large batch", () => {
  const memprefix = processes();

  it("plans it on a thread", async () => {
    const many = (n: number) => ({
      ...{ user_id: `user-${n % 2}`, request_id: `r-${n}`, query: `Question ${n}?` },
      memories: Array.from({ length: 20 }, (_, at) => ({
        id: `m-${(7 * n + at) % 97}`,
        memory: `Fact ${(7 * n + at) % 97}.`,
      })),
    });
    const { address } = await memprefix.serve();
    const placements = async (requests: readonly object[]) => {
      const headers = { "content-type": "application/json" };
      const body = JSON.stringify({ requests });
      const answer = await fetch(`${address}/compose/batch`, { method: "POST", headers, body });
      const { answers } = batchResult.parse(await answer.json());
      return answers.map((each) => ("answer" in each ? each.answer.blocks.map(({ placement }) => placement) : []));
    };
    const first = await placements(Array.from({ length: 300 }, (_, n) => many(n)));
    const shared = first.filter((each) => each.includes("cached_prefix"));
    expect(shared.length).toBeGreaterThan(200);

    // Most of the same requests again, in another order: planned by themselves they would share other prefixes than those that are cached.
    const again = Array.from({ length: 300 }, (_, n) => ({ ...many(299 - n), request_id: `again-${n}` }));
    const most = await placements(again.filter((_request, n) => n % 7 !== 0));
    expect(most).toEqual(most.map(() => Array(20).fill("cached_prefix")));
  });
});
