import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { SETTING_NAMES, variableOf } from "../../src/cli/setting-list.js";
import { launch, listening } from "../cli/launch.js";
import { agentEngine } from "../clients/agent-engine.js";
import { startRestServer } from "../memory/mem0-wire-server.js";

const PROJECT = resolve(import.meta.dirname, "../..");
const TEXT = readFileSync(join(PROJECT, "compose.yaml"), "utf8");

/** What has to be given. */
const GIVEN: Readonly<Record<string, string>> = {
  MEMPREFIX_API_KEY: "a".repeat(32),
  MEM0_API_KEY: "b".repeat(32),
  ENGINE_API_KEY: "c".repeat(32),
  MEM0_JWT_SECRET: "d".repeat(32),
  OPENAI_API_KEY: "e".repeat(32),
  POSTGRES_PASSWORD: "f".repeat(32),
};

/** Puts variables into each text of the file as Compose does: `${NAME:-default}`, `${NAME:?why it has to be given}`, and `$$` for one `$`. */
function interpolated(value: unknown, given: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(value)) return value.map((each) => interpolated(each, given));
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, interpolated(each, given)]));
  if (typeof value !== "string") return value;
  const variable = /\$\$|\$\{(\w+):([-?])([^}]*)\}/g;
  return value.replaceAll(variable, (all, name?: string, kind?: string, rest?: string) => {
    if (all === "$$") return "$";
    const found = given[name ?? ""];
    if (found === undefined && kind === "?") throw new Error(`${name} is not given: ${rest}`);
    return found ?? rest ?? "";
  });
}

const strings = z.array(z.string());
/** What is read of the file. */
const service = z.looseObject({
  environment: z.record(z.string(), z.string()),
  ports: strings.default([]),
  depends_on: z.record(z.string(), z.object({ condition: z.literal("service_healthy") })).default({}),
  healthcheck: z.object({ test: strings }).optional(),
});
const file = z.object({ services: z.record(z.string(), service) });
const compose = file.parse(interpolated(parse(TEXT), GIVEN));
const services = Object.entries(compose.services);
const { memprefix } = compose.services;

describe("compose.yaml", () => {
  it("has every secret given, as docs/container.md has it, and none in the file", () => {
    const page = readFileSync(join(PROJECT, "docs/container.md"), "utf8");
    const shown = [...page.matchAll(/^echo "(\w+)=/gm)].map(([, name]) => name);
    expect(shown.toSorted()).toEqual(Object.keys(GIVEN).toSorted());
    for (const name of Object.keys(GIVEN)) {
      const { [name]: _without, ...others } = GIVEN;
      expect(() => interpolated(parse(TEXT), others), name).toThrow(name);
    }
    const secrets = services.flatMap(([, { environment }]) =>
      Object.entries(environment).filter(([name]) => /KEY|SECRET|PASSWORD/.test(name)),
    );
    const given = new Set(Object.values(GIVEN));
    expect(secrets.filter(([, value]) => !given.has(value))).toEqual([]);
  });

  it("starts each service once those that it needs are healthy, which they have a check for", () => {
    const needed = services.flatMap(([, { depends_on: on }]) => Object.keys(on));
    expect(needed.toSorted()).toEqual(["engine", "mem0", "postgres"]);
    expect(needed.filter((name) => compose.services[name]?.healthcheck === undefined)).toEqual([]);
  });

  it("gives no service capabilities that it does not need; only memprefix can be reached, and only from the machine", () => {
    for (const [name, service] of services) {
      expect(service, name).toMatchObject({ cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
      expect(service.ports, name).toEqual(name === "memprefix" ? ["127.0.0.1:4600:4600"] : []);
    }
    expect(memprefix).toMatchObject({ read_only: true, tmpfs: ["/tmp"], volumes: ["memprefix-data:/data"] });
  });

  it("has settings that there are, and names services by their names", () => {
    const variables = new Set(SETTING_NAMES.map(variableOf));
    const environment = Object.entries(memprefix?.environment ?? {});
    expect(environment.filter(([name]) => !variables.has(name))).toEqual([]);
    const hosts = environment.flatMap(([, value]) => /^http:\/\/([^:/]+)/.exec(value)?.[1] ?? []);
    expect(hosts).toEqual(["mem0", "engine"]);
  });

  it("connects memprefix to Mem0 and the engine: by its environment, memories are found there and prompts arrive", async () => {
    const [mem0, engine] = [await startRestServer(GIVEN["MEM0_API_KEY"] ?? ""), await agentEngine()];
    const dataDir = mkdtempSync(join(tmpdir(), "memprefix-compose-file-"));
    const environment = Object.entries(memprefix?.environment ?? {}).map(([name, value]) => {
      const here = value.replace("http://mem0:8000", mem0.url).replace("http://engine:8000/v1", engine.url);
      return [name, here];
    });
    const service = launch(["serve"], {
      ...{ PATH: process.env["PATH"] ?? "", MEMPREFIX_DATA_DIR: dataDir, MEMPREFIX_PORT: "0" },
      ...Object.fromEntries(environment),
    });
    onTestFinished(async () => {
      service.child.kill("SIGKILL");
      await service.ended;
      await Promise.all([mem0.close(), engine.close()]);
      rmSync(dataDir, { recursive: true });
    });
    const base = await listening(service);
    const post = (path: string, body: object) =>
      fetch(`${base}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${GIVEN["MEMPREFIX_API_KEY"]}` },
        body: JSON.stringify(body),
      });
    const added = await post("/memories", { user_id: "ana", memories: ["Ana is vegetarian."] });
    expect(added.status).toBe(201);
    const messages = [{ role: "user", content: "What may a vegetarian eat?" }];
    const chat = await post("/v1/chat/completions", { model: "any", user: "ana", messages });
    expect(chat.status).toBe(200);
    expect(engine.refused).toEqual([]);
    const [served] = engine.served;
    expect(served?.headers.authorization).toBe(`Bearer ${GIVEN["ENGINE_API_KEY"]}`);
    expect(served?.asked.prompt.join()).toContain("Ana is vegetarian.");
    expect(chat.headers.get("x-memprefix-cached-tokens")).toBe("0");
  });
});
