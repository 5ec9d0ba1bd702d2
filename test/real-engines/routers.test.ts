import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Launched, launch, listening } from "../cli/launch.js";
import { endingWithUs } from "../ending-children.js";
import { freePort } from "../local-server.js";
import { temporaryFolder } from "../temporary-folders.js";
import { routerPath } from "./install.js";
import { chatsAt, memoriesOf } from "./real-engine.suite.js";
import { type RealEngine, serving } from "./serving.js";

/** Each by its setting of memprefix's, with a policy that goes by the key that it gets then. */
const ROUTERS = [
  { router: "vllm-router", program: ["vllm-router"], policy: "consistent_hash" },
  { router: "sglang", program: ["sglang-router", "launch"], policy: "manual" },
] as const;
/** Milliseconds until a router has noticed what became of its workers. */
const PATIENT = { timeout: 120_000, interval: 500 };
const engine = { engine: "llama", model: "smol", contextTokens: 2_048, slots: 4 } as const;

describe.each(ROUTERS)("$router in front of two engines", ({ router, program: [name, ...command], policy }) => {
  const binary = routerPath(name);
  const isThere = existsSync(binary);
  const skipped = isThere ? "" : " (skipped: npm run engines installs it)";
  const folder = temporaryFolder();
  let engines: RealEngine[] = [];
  let routing: ChildProcess;
  let service: Launched;
  let base: string;
  let admin: string;

  beforeAll(async () => {
    if (!isThere) return;
    engines = [await serving(engine), await serving(engine)];
    const port = await freePort();
    admin = `http://127.0.0.1:${port}`;
    const workers = engines.map(({ url }) => new URL(url).origin);
    const args = ["--host", "127.0.0.1", "--port", `${port}`, "--policy", policy, "--worker-urls", ...workers];
    const checks = ["--health-check-interval-secs", "1", "--health-failure-threshold", "1"];
    routing = spawn(binary, [...command, ...args, ...checks, "--prometheus-port", `${await freePort()}`], {
      stdio: "ignore",
    });
    endingWithUs(routing);
    await vi.waitFor(async () => expect((await fetch(`${admin}/v1/models`)).ok).toBe(true), PATIENT);
    service = launch(["serve"], {
      PATH: process.env["PATH"] ?? "",
      MEMPREFIX_DATA_DIR: folder,
      MEMPREFIX_PORT: "0",
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_UPSTREAM_URL: `${admin}/v1`,
      MEMPREFIX_ENGINE_FAMILY: "llamacpp",
      MEMPREFIX_ROUTER: router,
    });
    base = await listening(service);
  }, 400_000);
  afterAll(async () => {
    service?.child.kill("SIGTERM");
    await service?.ended;
    routing?.kill("SIGKILL");
    for (const each of engines) await each.kill();
  });

  const histories = new Map<string, object[]>();
  /** A user's next turn. */
  const turn = async (user: string) => {
    const history = histories.get(user) ?? [];
    const asked = [...history, { role: "user", content: `And in year ${history.length}?` }];
    const memprefix = { conversation_id: "c", memories: memoriesOf(0) };
    const sent = await chatsAt(base, "smol").chat(user, asked, { memprefix, max_tokens: 4 });
    histories.set(user, [...asked, { role: "assistant", content: sent.text }]);
    return sent;
  };
  /** How many prompts each engine has computed. */
  const served = () =>
    Promise.all(
      engines.map(async ({ url }) => {
        const metrics = await (await fetch(new URL("/metrics", url))).text();
        return Number(/^llamacpp:prompt_tokens_total (\d+)/m.exec(metrics)?.[1] ?? 0);
      }),
    );

  it.skipIf(!isThere)(
    `brings a conversation's prompts to the engine that has it cached${skipped}`,
    async () => {
      const users: string[] = [];
      // Until both are used, so that affinity means something: whom a user gets is chance.
      do {
        users.push(`user ${users.length}`);
        await turn(users.at(-1) ?? "");
      } while (users.length < 4 || (users.length < 40 && Math.min(...(await served())) === 0));
      expect(Math.min(...(await served()))).toBeGreaterThan(0);
      for (const user of users.slice(0, 4)) {
        const { prompt, cached } = await turn(user);
        expect(cached, user).toBeGreaterThan(0.8 * (prompt - 40));
      }
    },
    400_000,
  );

  it.skipIf(!isThere)(
    `goes on where a worker dies, and where one joins${skipped}`,
    async () => {
      const [first] = engines;
      await first?.kill();
      // Whose worker it was only the router knows, and it takes a check of theirs to know what became of one.
      for (const user of ["ada", "bob", "eve"]) await vi.waitFor(() => turn(user), PATIENT);
      engines[0] = await serving({ ...engine, port: Number(new URL(first?.url ?? "").port) });
      for (const user of ["ada", "bob", "eve"]) await vi.waitFor(() => turn(user), PATIENT);
      await vi.waitFor(async () => {
        const again = await turn("bob");
        expect(again.cached).toBeGreaterThan(0.8 * (again.prompt - 40));
      }, PATIENT);
    },
    400_000,
  );
});
