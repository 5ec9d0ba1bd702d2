import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CLIENT_VARIABLES, SETTING_NAMES, variableOf } from "../../src/cli/setting-list.js";
import {
  engineOf,
  identityOf,
  readSettings,
  residencyOf,
  sessionRouterOf,
  sharedCacheOf,
  sourceOf,
  unknownVariables,
  workersOf,
} from "../../src/cli/settings.js";
import { DEFAULT_DEPTH, ENGINE_MODELS } from "../../src/core/index.js";
import { InvalidRequestError } from "../../src/service/base/errors.js";
import { engineFamilyFor, engineModelFor } from "../../src/service/base/memprefix-parts.js";
import { ROOT } from "../docs/pages.js";
import { commands } from "./memprefix-command.js";

type Environment = Readonly<Record<string, string>>;

function issuesIn(environment: Environment): InvalidRequestError["issues"] {
  try {
    readSettings(environment);
    return [];
  } catch (error) {
    if (error instanceof InvalidRequestError) return error.issues;
    throw error;
  }
}

const wrongIn = (environment: Environment) => issuesIn(environment).map(({ field }) => field);

describe("the settings", () => {
  it("have a default for everything, which an empty variable leaves as it is", () => {
    const settings = readSettings({});
    expect(settings).toMatchObject({
      host: "127.0.0.1",
      port: 4600,
      dataDir: "memprefix-data",
      searchTimeoutMs: 2_000,
    });
    expect(sourceOf(settings)).toBe("embedded");
    expect(readSettings({ MEMPREFIX_PORT: "", MEMPREFIX_SOURCE: "", PATH: "/bin" })).toEqual(settings);
  });

  it("take what a prompt costs by name or as an object", () => {
    const own = {
      cost: { kind: "time", fixedMs: 3, perTokenMs: 0.5, perPairMs: 0 },
      blockTokens: 32,
      minimumPrefixTokens: 64,
    };
    const of = (environment: Record<string, string>, model: string | null = null) =>
      engineModelFor(engineOf(readSettings(environment)), model);
    expect(of({ MEMPREFIX_ENGINE_COST: "hosted" })).toEqual(ENGINE_MODELS.hosted);
    expect(of({ MEMPREFIX_ENGINE_COST: JSON.stringify(own) })).toEqual(own);
    // By the host, the family and the model, where nobody says it: time, or a bill.
    expect(of({})).toEqual(ENGINE_MODELS.gpu);
    expect(of({ MEMPREFIX_ENGINE_FAMILY: "mistral" })).toEqual(ENGINE_MODELS.hosted);
    const deepSeek = { MEMPREFIX_UPSTREAM_URL: "https://api.deepseek.com/v1" };
    expect(of(deepSeek).cost).toEqual({ kind: "money", uncached: 1, written: 1, cached: 0.02 });
    const anthropic = { MEMPREFIX_ENGINE_FAMILY: "anthropic", MEMPREFIX_UPSTREAM_URL: "http://127.0.0.1:4000/v1" };
    expect(of(anthropic).cost).toEqual({ kind: "money", uncached: 1, written: 1.25, cached: 0.05 });
    expect(of(anthropic, "claude-haiku-4-5").minimumPrefixTokens).toBe(4_096);
    expect(of({ ...anthropic, MEMPREFIX_ENGINE_COST: "gpu" }, "claude-haiku-4-5")).toEqual(ENGINE_MODELS.gpu);
  });

  it.each([
    [{ MEMPREFIX_UPSTREAM_URL: "https://api.openai.com/v1" }, "gpt-5-mini", "openai"],
    [{ MEMPREFIX_UPSTREAM_URL: "https://api.openai.com/v1" }, "gpt-5.6", "openai-breakpoints"],
    [{ MEMPREFIX_UPSTREAM_URL: "https://api.openai.com/v1" }, null, "openai"],
    [{ MEMPREFIX_UPSTREAM_URL: "https://api.openai.com/v1", MEMPREFIX_ENGINE_FAMILY: "generic" }, "gpt-5.6", "generic"],
    [{ MEMPREFIX_UPSTREAM_URL: "https://api.anthropic.com/v1" }, "claude-opus-4-8", "anthropic"],
    [{ MEMPREFIX_UPSTREAM_URL: "https://api.mistral.ai/v1" }, null, "mistral"],
    [{ MEMPREFIX_UPSTREAM_URL: "https://api.deepseek.com/v1" }, null, "generic"],
    [{ MEMPREFIX_UPSTREAM_URL: "http://127.0.0.1:8000/v1" }, "gpt-5.6", "generic"],
    [{}, "gpt-5.6", "generic"],
  ])("tell the engine family by the upstream's host and the model: %j, %s", (environment, model, family) => {
    expect(engineFamilyFor(engineOf(readSettings(environment)), model)).toBe(family);
  });

  it("have OpenAI's prices with nothing but its address", () => {
    const of = engineOf(readSettings({ MEMPREFIX_UPSTREAM_URL: "https://api.openai.com/v1" }));
    const cost = (written: number) => ({ kind: "money", uncached: 1, written, cached: 0.05 });
    expect(engineModelFor(of, "gpt-5-mini")).toEqual({ cost: cost(1), blockTokens: 128, minimumPrefixTokens: 1_024 });
    expect(engineModelFor(of, "gpt-5.6")).toEqual({ cost: cost(1.25), blockTokens: 1, minimumPrefixTokens: 1_024 });
  });

  it.each([
    [{}, { tokens: null }],
    [{ MEMPREFIX_CACHE_SIZE: "65536" }, { tokens: 65_536 }],
    [{ MEMPREFIX_CACHE_SIZE: "8 slots" }, undefined],
    [{ MEMPREFIX_ENGINE_FAMILY: "openai" }, undefined],
    [{ MEMPREFIX_ENGINE_FAMILY: "openai", MEMPREFIX_CACHE_SIZE: "65536" }, { tokens: 65_536 }],
  ])("say whether the engine's cache is planned for as all users fill it: %j", (environment, cache) => {
    expect(sharedCacheOf(readSettings(environment))).toEqual(cache);
  });

  it("choose how many memories a prompt gets only where they say so, and not with Anthropic's models", () => {
    expect(readSettings({}).adaptiveDepth).toBeNull();
    expect(readSettings({ MEMPREFIX_ADAPTIVE_DEPTH: "off" }).adaptiveDepth).toBeNull();
    expect(readSettings({ MEMPREFIX_ADAPTIVE_DEPTH: "on" }).adaptiveDepth).toEqual(DEFAULT_DEPTH);
    const some = { MEMPREFIX_ADAPTIVE_DEPTH: '{"firstBlocks":3,"entropyNats":0.5}' };
    expect(readSettings(some).adaptiveDepth).toEqual({ ...DEFAULT_DEPTH, firstBlocks: 3, entropyNats: 0.5 });
    const own = { MEMPREFIX_ENGINE_FAMILY: "anthropic" };
    expect(wrongIn({ ...own, ...some })).toEqual(["MEMPREFIX_ADAPTIVE_DEPTH"]);
    expect(wrongIn({ ...own, MEMPREFIX_ADAPTIVE_DEPTH: "off" })).toEqual([]);
  });

  it.each([
    [{ MEMPREFIX_MEM0_URL: "http://127.0.0.1:8000" }, "rest"],
    [{ MEMPREFIX_MEM0_API_KEY: "key" }, "hosted"],
    [{ MEMPREFIX_MEM0_URL: "http://127.0.0.1:8000", MEMPREFIX_MEM0_API_KEY: "key" }, "rest"],
    [
      { MEMPREFIX_MEM0_URL: "http://127.0.0.1:8000", MEMPREFIX_MEM0_API_KEY: "key", MEMPREFIX_SOURCE: "hosted" },
      "hosted",
    ],
    [{ MEMPREFIX_MEM0_API_KEY: "key", MEMPREFIX_SOURCE: "none" }, "none"],
  ])("choose the memory source by what is given: %j", (environment, source) => {
    expect(sourceOf(readSettings(environment))).toBe(source);
  });

  it.each([
    [{}, { kind: "all" }],
    [{ MEMPREFIX_CACHE_TTL_SECONDS: "300" }, { kind: "ttl", ttlMs: 300_000 }],
    [{ MEMPREFIX_CACHE_SIZE: "8 slots" }, { kind: "slots", slots: 8 }],
  ])("say how long the engine keeps what it cached: %j", (environment, residency) => {
    expect(residencyOf(readSettings(environment))).toEqual(residency);
  });

  it.each([
    ["MEMPREFIX_PORT", "eighty"],
    ["MEMPREFIX_PORT", "65536"],
    ["MEMPREFIX_SOURCE", "mem0"],
    ["MEMPREFIX_MEM0_URL", "ftp://127.0.0.1"],
    ["MEMPREFIX_MEM0_SEARCH", '{"threshold":2}'],
    ["MEMPREFIX_MEM0_SEARCH", '{"run_id":"trip"}'],
    ["MEMPREFIX_SEARCH_TIMEOUT_MS", "0"],
    ["MEMPREFIX_CACHE_TTL_SECONDS", "5m"],
    ["MEMPREFIX_CACHE_SIZE", "64k"],
    ["MEMPREFIX_CACHE_SIZE", "300 slots"],
    ["MEMPREFIX_WEBHOOK_TOKEN", "short"],
    ["MEMPREFIX_KEEP_DAYS", "1.5"],
    ["MEMPREFIX_UPSTREAM_URL", "127.0.0.1:8000/v1"],
    ["MEMPREFIX_ENGINE_COST", "free"],
    ["MEMPREFIX_ENGINE_COST", '{"cost":{"kind":"money","uncached":1,"written":-1,"cached":0}}'],
    ["MEMPREFIX_ADAPTIVE_DEPTH", "yes"],
    ["MEMPREFIX_ADAPTIVE_DEPTH", '{"firstBlocks":0}'],
    ["MEMPREFIX_ADAPTIVE_DEPTH", '{"first_blocks":3}'],
  ])("refuse %s=%j by name", (variable, value) => {
    expect(wrongIn({ [variable]: value })).toEqual([variable]);
  });

  it.each([
    ["rest", "MEMPREFIX_MEM0_URL"],
    ["hosted", "MEMPREFIX_MEM0_API_KEY"],
  ])("name what the source %s needs", (source, variable) => {
    expect(wrongIn({ MEMPREFIX_SOURCE: source })).toEqual([variable]);
  });

  it("take a router, or the workers that memprefix chooses from", () => {
    const workers = readSettings({ MEMPREFIX_ROUTER: "workers:gpu-0, gpu-1" });
    expect(workersOf(workers)).toEqual(["gpu-0", "gpu-1"]);
    expect(sessionRouterOf(workers)).toBeNull();
    const router = readSettings({ MEMPREFIX_ROUTER: "sglang" });
    expect(workersOf(router)).toBeUndefined();
    expect(sessionRouterOf(router)).not.toBeNull();
    expect(router.router).toEqual({ header: "x-smg-routing-key" });
    expect(readSettings({ MEMPREFIX_ROUTER: "header:X-Session" }).router).toEqual({ header: "x-session" });
    for (const value of ["workers:", "workers:a,a", "other", "header:"])
      expect(wrongIn({ MEMPREFIX_ROUTER: value })).toEqual(["MEMPREFIX_ROUTER"]);
  });

  it("take the cache's size in tokens, or in slots, which have no lifetime", () => {
    const of = (size: string) => readSettings({ MEMPREFIX_CACHE_SIZE: size }).cacheSize;
    expect(of("120000")).toEqual({ tokens: 120_000 });
    expect(of("120000 tokens")).toEqual({ tokens: 120_000 });
    expect(of("4 slots")).toEqual({ slots: 4 });
    const slots = { MEMPREFIX_CACHE_SIZE: "4 slots", MEMPREFIX_CACHE_TTL_SECONDS: "300" };
    expect(wrongIn(slots)).toEqual(["MEMPREFIX_CACHE_SIZE"]);
    expect(wrongIn({ ...slots, MEMPREFIX_CACHE_SIZE: "4" })).toEqual([]);
  });

  it("take flags before the environment, and name what is wrong as it was given", () => {
    expect(readSettings({ MEMPREFIX_PORT: "1" }, { port: "2" }).port).toBe(2);
    expect(readSettings({ MEMPREFIX_PORT: "1" }, { port: undefined }).port).toBe(1);
    expect(() => readSettings({}, { port: "x" })).toThrow(/--port: must be a whole number/);
  });

  it("have nowhere to write exchanges back to without a source", () => {
    expect(wrongIn({ MEMPREFIX_WRITE_BACK: "on", MEMPREFIX_SOURCE: "none" })).toEqual(["MEMPREFIX_WRITE_BACK"]);
    expect(wrongIn({ MEMPREFIX_WRITE_BACK: "on" })).toEqual([]);
  });

  it("know every variable that the documentation and the examples name", () => {
    const pages = ["docs", "examples"].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
        .filter((name) => /\.(md|py|yaml)$/.test(name))
        .map((name) => readFileSync(join(ROOT, folder, name), "utf8")),
    );
    const named = pages.flatMap((page) => page.match(/\bMEMPREFIX_[A-Z0-9_]*[A-Z0-9]\b/g) ?? []);
    const known = new Set<string>([...SETTING_NAMES.map(variableOf), ...CLIENT_VARIABLES]);
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([]);
    expect(CLIENT_VARIABLES.filter((name) => !named.includes(name))).toEqual([]);
  });

  it("name everything that is wrong at once", () => {
    const environment = { MEMPREFIX_PORT: "x", MEMPREFIX_SOURCE: "rest", MEMPREFIX_PROT: "1" };
    expect(wrongIn(environment).toSorted()).toEqual(["MEMPREFIX_MEM0_URL", "MEMPREFIX_PORT"]);
  });

  it("ignore a variable that is no setting, which is listed with the nearest one", () => {
    const environment = { MEMPREFIX_PROT: "1", MEMPREFIX_URL: "http://127.0.0.1:4600", MEMSTEM_PORT: "2" };
    expect(readSettings(environment)).toEqual(readSettings({}));
    expect(unknownVariables(environment)).toEqual([{ variable: "MEMPREFIX_PROT", nearest: "MEMPREFIX_PORT" }]);
  });
});

describe("MEMPREFIX_IDENTITY", () => {
  it("lists places in their order", () => {
    const settings = readSettings({
      MEMPREFIX_IDENTITY:
        "user=header:X-User,user=header:X-Other,user=body:metadata.user_id,conversation=header:x-session",
    });
    expect(identityOf(settings)).toEqual({
      user: [
        { from: "header", name: "x-user" },
        { from: "header", name: "x-other" },
        { from: "body", path: ["metadata", "user_id"] },
      ],
      agent: [],
      conversation: [{ from: "header", name: "x-session" }],
      sideCall: [{ from: "header", name: "x-openwebui-task" }],
    });
  });

  it.each([
    ...["user", "user=x", "tenant=header:x", "user=header:x y", "user=header:X-Memprefix-User"],
    ...["user=body:", "user=body:a..b", "", "side_call=prompt:open-webui"],
  ])("rejects %j", (value) => {
    const [issue] = issuesIn({ MEMPREFIX_IDENTITY: `user=header:x-a,${value}` });
    expect(issue?.field).toBe("MEMPREFIX_IDENTITY");
    expect(issue?.message).toContain(JSON.stringify(value));
  });
});

describe("memprefix serve", () => {
  const memprefix = commands();

  it("names a wrong variable and ends with 2 before it touches anything", async () => {
    const environment = { MEMPREFIX_PORT: "eighty", MEMPREFIX_HOTS: "127.0.0.1" };
    const { code, stdout, stderr } = await memprefix.run(["serve"], { environment });
    expect(code).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toMatch(
      /^memprefix: MEMPREFIX_HOTS is not a setting and is ignored; the nearest is MEMPREFIX_HOST\nmemprefix: MEMPREFIX_PORT: .+\n$/,
    );
    expect(existsSync(memprefix.dataDir)).toBe(false);
  });

  const places: readonly (readonly [string, () => string])[] = [
    ["below a file", () => join(memprefix.root, "file", "data")],
    ["a file", () => join(memprefix.root, "file")],
  ];
  it.each(places.flatMap((place) => ["none", "embedded"].map((source) => [...place, source] as const)))(
    "says in one line that the data directory cannot be used: %s",
    async (_where, place, source) => {
      writeFileSync(join(memprefix.root, "file"), "");
      const environment = { MEMPREFIX_DATA_DIR: place(), MEMPREFIX_SOURCE: source };
      const { code, stderr } = await memprefix.run(["serve"], { environment });
      expect(code).toBe(1);
      expect(stderr).toMatch(/^memprefix: cannot open the database .*\n$/);
    },
  );
});
