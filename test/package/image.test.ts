import { cpSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { SETTING_NAMES, variableOf } from "../../src/cli/setting-list.js";
import { freePort, localServer } from "../local-server.js";
import { type BuiltImage, buildImage, type Contained, IS_ROOT } from "./built-image.js";
import { readStages } from "./dockerfile.js";

const PROJECT = resolve(import.meta.dirname, "../..");
const versions = z.record(z.string(), z.string());
const { scripts, dependencies, devDependencies } = z
  .object({
    scripts: z.object({ start: z.string() }),
    dependencies: versions,
    devDependencies: versions,
  })
  .parse(JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8")));

const PAGE = readFileSync(join(PROJECT, "docs/container.md"), "utf8");

describe("the Dockerfile", () => {
  const stages = readStages();
  const [last] = stages.slice(-1);

  it("runs as a user who is not root, by number, so that a cluster can check it", () => {
    expect(last?.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  it("starts Node without a shell, which would keep signals, and with npm start's flags", () => {
    const [, flags] = /exec node (.*)dist\/cli\/main\.js serve/.exec(scripts.start) ?? [];
    expect(last?.entrypoint).toEqual(["node", flags?.trim(), "/app/dist/cli/main.js"]);
    expect(last?.command).toEqual(["serve"]);
  });

  it("sets what there is to set, no secrets, and files on its volume alone", () => {
    const variables = new Set(SETTING_NAMES.map(variableOf));
    const environment = last?.environment ?? {};
    const named = Object.keys(environment).filter((name) => name.startsWith("MEMPREFIX_"));
    expect(named.filter((name) => !variables.has(name))).toEqual([]);
    expect(Object.keys(environment).filter((name) => /KEY|TOKEN|SECRET/.test(name))).toEqual([]);
    expect(last?.volumes).toEqual(["/data"]);
    expect(environment).toMatchObject({ MEMPREFIX_DATA_DIR: "/data", SQLITE_TMPDIR: "/data" });
    expect(last?.ports).toEqual([environment["MEMPREFIX_PORT"]]);
  });

  it("takes optional packages, which docs/container.md names at the versions that memprefix is tested with", () => {
    const [, named = ""] = /--build-arg PACKAGES="([^"]+)"/.exec(PAGE) ?? [];
    const packages = named.split(" ").map((each) => [each.replace(/@[^@]+$/, ""), each.replace(/^.+@/, "")]);
    expect(packages.length).toBeGreaterThan(1);
    const tested = { ...devDependencies, ...dependencies };
    expect(packages.filter(([name = "", version]) => tested[name] !== version)).toEqual([]);
  });
});

const AS = IS_ROOT ? "as another user" : "as this user, who is not root";

describe(`the image, by the Dockerfile's steps, ${AS}, on a tree that cannot be written`, () => {
  const KEY = "k".repeat(32);
  let image: BuiltImage;
  const running = new Set<Contained>();
  beforeAll(() => {
    image = buildImage();
  }, 300_000);
  afterAll(async () => {
    for (const { child, ended } of running) {
      child.kill("SIGKILL");
      await ended;
    }
    image.remove();
  });

  /** A container that is healthy, and how to ask it. */
  async function started(environment: Readonly<Record<string, string>> = {}) {
    const own = {
      MEMPREFIX_API_KEY: KEY,
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_PORT: String(await freePort()),
      ...environment,
    };
    const container = image.run(own);
    running.add(container);
    const health = () => image.exec(own, image.stage.healthcheck?.command ?? []).ended;
    const isUp = async () => {
      if ((await health()) !== 0) throw new Error(`it is not healthy: ${container.output.stderr}`);
    };
    await vi.waitFor(isUp, { timeout: 30_000, interval: 200 });
    const post = (path: string, body: object) =>
      fetch(`http://127.0.0.1:${own.MEMPREFIX_PORT}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
        body: JSON.stringify(body),
      });
    return { ...container, own, health, post };
  }

  async function ask(post: (path: string, body: object) => Promise<Response>, body: object) {
    const answer = await post("/compose", { user_id: "ana", conversation_id: "trip", ...body });
    const { messages } = z.object({ messages: z.array(z.unknown()) }).parse(await answer.json());
    return messages.map((message) => JSON.stringify(message));
  }

  const first = { role: "user", content: "Where should we eat tonight?" };
  const answered = { role: "assistant", content: "Try Jardim das Cerejas." };
  const memory = { id: "m1", memory: "Ana is vegetarian." };
  let composed: readonly string[] = [];

  it("does not listen without an API key: it listens on all of a container's addresses", async () => {
    const container = image.run({ MEMPREFIX_SOURCE: "none" });
    expect(await container.ended).toBe(2);
    expect(container.output.stderr).toContain("give one as MEMPREFIX_API_KEY");
  });

  it("cannot write anything but its volume", async () => {
    const attempt = (path: string) => image.exec({}, ["node", "-e", `fs.writeFileSync("${image.at(path)}", "")`]);
    expect(await attempt("/data/own").ended).toBe(0);
    for (const path of ["/app/own", "/app/dist/own", "/app/dist/cli/main.js", "/app/node_modules/own"])
      expect(await attempt(path).ended, path).not.toBe(0);
  });

  it("is healthy, composes, and ends well in less than the 10 s of Docker's with a request that has no end", async () => {
    let isAsked = false;
    const silent = await localServer(() => {
      isAsked = true;
    });
    onTestFinished(silent.close);
    const { child, ended, health, post } = await started({ MEMPREFIX_UPSTREAM_URL: `${silent.url}/v1` });
    composed = await ask(post, { messages: [first], memories: [memory] });
    expect(composed.join()).toContain("vegetarian");
    const asked = post("/v1/chat/completions", { model: "any", user: "bo", messages: [first] }).catch(() => "cut off");
    await vi.waitFor(() => expect(isAsked).toBe(true));
    const from = performance.now();
    child.kill("SIGTERM");
    await expect.poll(health, { timeout: 7_000 }).toBe(1);
    expect(await ended).toBe(0);
    expect(performance.now() - from).toBeLessThan(10_000);
    await asked;
    expect(await health()).toBe(1);
  });

  const question = { role: "user", content: "And what can we do tomorrow?" };
  const continues = async (post: (path: string, body: object) => Promise<Response>) => {
    const continued = await ask(post, { messages: [first, answered, question], memories: [memory] });
    expect(continued).toHaveLength(3);
    expect(continued.slice(0, 1)).toEqual(composed);
  };

  it("continues the conversation on the same volume, byte for byte", async () => {
    const { child, ended, post } = await started();
    await continues(post);
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
  });

  it("has memprefix's commands beside the service, on the same volume, and is restored as docs/container.md has it", async () => {
    const printed = async ({ ended, output }: Contained) => {
      expect(await ended, output.stderr).toBe(0);
      return output.stdout;
    };
    const { own, child, ended } = await started();
    const memprefix = (...args: readonly string[]) => printed(image.exec(own, ["/usr/local/bin/memprefix", ...args]));
    const exported = await memprefix("export", "bo");
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
    cpSync(image.at("/data"), image.at("/backup-1"), { recursive: true });
    const again = await started();
    await again.post("/compose", { user_id: "bo", query: "Hello?" });
    expect(await memprefix("export", "bo")).not.toBe(exported);
    again.child.kill("SIGTERM");
    expect(await again.ended).toBe(0);
    const [, restore = ""] = /-c '(rm [^']+)'/.exec(PAGE) ?? [];
    const here = restore.replaceAll("/data", image.at("/data")).replaceAll("/backup/", image.at("/backup-1/"));
    await printed(image.exec({}, ["sh", "-c", here]));
    expect(await memprefix("export", "bo")).toBe(exported);
    await continues((await started()).post);
  });

  it("leaves nothing among temporary files", () => {
    expect(readdirSync(image.at("/tmp"))).toEqual([]);
  });
});
