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
/** Each file, what has to be given for it, which other services it starts, what its memprefix calls, and with which key the engine. */
const FILES = [
  [
    "compose.yaml",
    "MEMPREFIX_API_KEY MEM0_API_KEY ENGINE_API_KEY MEM0_JWT_SECRET OPENAI_API_KEY POSTGRES_PASSWORD",
    ["engine", "mem0", "postgres"],
    ["http://mem0:8000", "http://engine:8000/v1"],
    "ENGINE_API_KEY",
  ],
  ["compose.openai.yaml", "MEMPREFIX_API_KEY OPENAI_API_KEY", [], ["https://api.openai.com/v1"], "OPENAI_API_KEY"],
  ["compose.laptop.yaml", "MEMPREFIX_API_KEY", ["engine"], ["http://engine:8080/v1"], null],
] as const;

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

describe.each(FILES)("%s", (path, secrets, needed, calls, engineKey) => {
  const given: Readonly<Record<string, string>> = Object.fromEntries(
    secrets.split(" ").map((name, at) => [name, String(at).repeat(32)]),
  );
  const text = readFileSync(join(PROJECT, path), "utf8");
  const compose = file.parse(interpolated(parse(text), given));
  const services = Object.entries(compose.services);
  const { memprefix } = compose.services;
  const page = readFileSync(join(PROJECT, "docs/container.md"), "utf8");
  const section = page.split(/^## /m).find((one) => one.includes(`\`${path}\``)) ?? "";

  it("has every secret given, as docs/container.md has it, and none in the file", () => {
    const shown = [...section.matchAll(/^echo "(\w+)=/gm)].map(([, name]) => name);
    expect(shown.toSorted()).toEqual(Object.keys(given).toSorted());
    for (const name of Object.keys(given)) {
      const others = Object.fromEntries(Object.entries(given).filter(([other]) => other !== name));
      expect(() => interpolated(parse(text), others), name).toThrow(name);
    }
    const named = services.flatMap(([, { environment }]) =>
      Object.entries(environment).filter(([name, value]) => /KEY|SECRET|PASSWORD/.test(name) && value !== ""),
    );
    expect(named.filter(([, value]) => !Object.values(given).includes(value))).toEqual([]);
  });

  it("starts each service once those that it needs are healthy, which they have a check for", () => {
    const named = services.flatMap(([, { depends_on: on }]) => Object.keys(on));
    expect(named.toSorted()).toEqual(needed);
    expect(named.filter((name) => compose.services[name]?.healthcheck === undefined)).toEqual([]);
  });

  it("gives no service capabilities that it does not need; only memprefix can be reached, and only from the machine", () => {
    for (const [name, service] of services) {
      expect(service, name).toMatchObject({ cap_drop: ["ALL"], security_opt: ["no-new-privileges:true"] });
      expect(service.ports, name).toEqual(name === "memprefix" ? ["127.0.0.1:4600:4600"] : []);
    }
    expect(memprefix).toMatchObject({ read_only: true, tmpfs: ["/tmp"], volumes: ["memprefix-data:/data"] });
  });

  it("has settings that there are, and calls what it is for", () => {
    const variables = new Set(SETTING_NAMES.map(variableOf));
    const environment = Object.entries(memprefix?.environment ?? {});
    expect(environment.filter(([name]) => !variables.has(name))).toEqual([]);
    expect(environment.flatMap(([, value]) => (/^https?:/.test(value) ? [value] : []))).toEqual(calls);
  });

  it("connects memprefix to its memories and the engine: by its environment, they are found and prompts arrive", async () => {
    const [source, engine] = [await startRestServer(given["MEM0_API_KEY"] ?? ""), await agentEngine()];
    const dataDir = mkdtempSync(join(tmpdir(), "memprefix-compose-file-"));
    const here: Readonly<Record<string, string>> = { "http://mem0:8000": source.url, [calls.at(-1) ?? ""]: engine.url };
    const settings = Object.entries(memprefix?.environment ?? {});
    const environment = settings.map(([name, value]) => [name, here[value] ?? value]);
    const service = launch(["serve"], {
      ...{ PATH: process.env["PATH"] ?? "", HOME: dataDir, MEMPREFIX_DATA_DIR: dataDir, MEMPREFIX_PORT: "0" },
      ...Object.fromEntries(environment),
      // The first search of the embedded Mem0 loads its model.
      MEMPREFIX_SEARCH_TIMEOUT_MS: "60000",
    });
    onTestFinished(async () => {
      service.child.kill("SIGKILL");
      await service.ended;
      await Promise.all([source.close(), engine.close()]);
      rmSync(dataDir, { recursive: true });
    });
    const base = await listening(service);
    const post = (path: string, body: object) =>
      fetch(`${base}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${given["MEMPREFIX_API_KEY"]}` },
        body: JSON.stringify(body),
      });
    const added = await post("/memories", { user_id: "ana", memories: ["Ana is vegetarian."] });
    expect(added.status).toBe(201);
    const messages = [{ role: "user", content: "What may a vegetarian eat?" }];
    const chat = await post("/v1/chat/completions", { model: "any", user: "ana", messages });
    expect(chat.status).toBe(200);
    expect(engine.refused).toEqual([]);
    const [served] = engine.served;
    expect(served?.headers.authorization).toBe(engineKey === null ? undefined : `Bearer ${given[engineKey]}`);
    expect(served?.asked.prompt.join()).toContain("Ana is vegetarian.");
    expect(chat.headers.get("x-memprefix-cached-tokens")).toBe("0");
  });
});
