import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CLIENT_VARIABLES, SETTING_NAMES, variableOf } from "../../src/cli/setting-list.js";
import {
  composeTimeoutOf,
  engineFamilyOf,
  engineModelOf,
  keyLimitsOf,
  readSettings,
  residencyOf,
  sharedCacheOf,
  sourceOf,
} from "../../src/cli/settings.js";
import { DEFAULT_DEPTH, ENGINE_MODELS } from "../../src/core/index.js";
import { InvalidRequestError } from "../../src/service/base/errors.js";
import { ROOT } from "../docs/pages.js";
import { commands } from "./memstem-command.js";

/** The variables that are named as wrong. */
function wrongIn(environment: Readonly<Record<string, string>>): string[] {
  try {
    readSettings(environment);
    return [];
  } catch (error) {
    if (error instanceof InvalidRequestError) return error.issues.map(({ field }) => field);
    throw error;
  }
}

describe("the settings", () => {
  it("have a default for everything, which an empty variable leaves as it is", () => {
    const settings = readSettings({});
    expect(settings).toMatchObject({ host: "127.0.0.1", port: 4600, dataDir: "memstem-data", searchTimeoutMs: 2_000 });
    expect(sourceOf(settings)).toBe("embedded");
    expect(readSettings({ MEMSTEM_PORT: "", MEMSTEM_SOURCE: "", PATH: "/bin" })).toEqual(settings);
  });

  it("take what a prompt costs by name or as an object", () => {
    const own = {
      cost: { kind: "time", fixedMs: 3, perTokenMs: 0.5, perPairMs: 0 },
      blockTokens: 32,
      minimumPrefixTokens: 64,
    };
    const of = (environment: Record<string, string>) => engineModelOf(readSettings(environment));
    expect(of({ MEMSTEM_COST: "hosted" })).toEqual(ENGINE_MODELS.hosted);
    expect(of({ MEMSTEM_COST: JSON.stringify(own) })).toEqual(own);
    // By the family, where nobody says it: time, or a bill.
    expect(of({})).toEqual(ENGINE_MODELS.gpu);
    expect(of({ MEMSTEM_ENGINE: "embedded", MEMSTEM_MODEL: "m.gguf" })).toEqual(ENGINE_MODELS.cpu);
    expect(of({ MEMSTEM_ENGINE_FAMILY: "openai" })).toEqual(ENGINE_MODELS.hosted);
    const anthropic = { MEMSTEM_UPSTREAM_API: "anthropic", MEMSTEM_UPSTREAM_URL: "https://api.anthropic.com/v1" };
    expect(of(anthropic)).toEqual(ENGINE_MODELS["hosted-writes"]);
    expect(of({ ...anthropic, MEMSTEM_COST: "gpu" })).toEqual(ENGINE_MODELS.gpu);
  });

  it.each([
    [{}, { tokens: null }],
    [{ MEMSTEM_CACHE_TOKENS: "65536" }, { tokens: 65_536 }],
    [{ MEMSTEM_CACHE_SLOTS: "8" }, undefined],
    [{ MEMSTEM_ENGINE_FAMILY: "openai" }, undefined],
    [{ MEMSTEM_ENGINE_FAMILY: "openai", MEMSTEM_CACHE_TOKENS: "65536" }, { tokens: 65_536 }],
  ])("say whether the engine's cache is planned for as all users fill it: %j", (environment, cache) => {
    expect(sharedCacheOf(readSettings(environment))).toEqual(cache);
  });

  it("choose how many memories a prompt gets only where they say so, and not with Anthropic's models", () => {
    expect(readSettings({}).adaptiveDepth).toBeNull();
    expect(readSettings({ MEMSTEM_ADAPTIVE_DEPTH: "off" }).adaptiveDepth).toBeNull();
    expect(readSettings({ MEMSTEM_ADAPTIVE_DEPTH: "on" }).adaptiveDepth).toEqual(DEFAULT_DEPTH);
    const some = { MEMSTEM_ADAPTIVE_DEPTH: '{"firstBlocks":3,"entropyNats":0.5}' };
    expect(readSettings(some).adaptiveDepth).toEqual({ ...DEFAULT_DEPTH, firstBlocks: 3, entropyNats: 0.5 });
    for (const own of [
      { MEMSTEM_ENGINE_FAMILY: "anthropic" },
      { MEMSTEM_UPSTREAM_API: "anthropic", MEMSTEM_UPSTREAM_URL: "https://api.anthropic.com/v1" },
    ]) {
      expect(wrongIn({ ...own, ...some })).toEqual(["MEMSTEM_ADAPTIVE_DEPTH"]);
      expect(wrongIn({ ...own, MEMSTEM_ADAPTIVE_DEPTH: "off" })).toEqual([]);
    }
  });

  it("let a chat be composed for as long as a search may take and some more", () => {
    expect(composeTimeoutOf(readSettings({}))).toBe(5_000);
    expect(composeTimeoutOf(readSettings({ MEMSTEM_SEARCH_TIMEOUT_MS: "7000" }))).toBe(10_000);
  });

  it("take the engine that prompts go to, which is any at first", () => {
    expect(readSettings({}).engineFamily).toBe("generic");
    expect(readSettings({ MEMSTEM_ENGINE_FAMILY: "vllm" }).engineFamily).toBe("vllm");
  });

  it.each([
    [{ MEMSTEM_MEM0_URL: "http://127.0.0.1:8000" }, "rest"],
    [{ MEMSTEM_MEM0_API_KEY: "key" }, "hosted"],
    [{ MEMSTEM_MEM0_URL: "http://127.0.0.1:8000", MEMSTEM_MEM0_API_KEY: "key" }, "rest"],
    [{ MEMSTEM_MEM0_URL: "http://127.0.0.1:8000", MEMSTEM_MEM0_API_KEY: "key", MEMSTEM_SOURCE: "hosted" }, "hosted"],
    [{ MEMSTEM_MEM0_API_KEY: "key", MEMSTEM_SOURCE: "none" }, "none"],
  ])("choose the memory source by what is given: %j", (environment, source) => {
    expect(sourceOf(readSettings(environment))).toBe(source);
  });

  it.each([
    [{}, { kind: "all" }],
    [{ MEMSTEM_CACHE_TTL_SECONDS: "300" }, { kind: "ttl", ttlMs: 300_000 }],
    [{ MEMSTEM_CACHE_SLOTS: "8" }, { kind: "slots", slots: 8 }],
    [
      { MEMSTEM_ENGINE: "embedded", MEMSTEM_MODEL: "m.gguf" },
      { kind: "slots", slots: 4 },
    ],
    [
      { MEMSTEM_ENGINE: "embedded", MEMSTEM_MODEL: "m.gguf", MEMSTEM_ENGINE_SLOTS: "2" },
      { kind: "slots", slots: 2 },
    ],
    [
      { MEMSTEM_ENGINE: "embedded", MEMSTEM_MODEL: "m.gguf", MEMSTEM_CACHE_TTL_SECONDS: "1" },
      { kind: "ttl", ttlMs: 1_000 },
    ],
  ])("say how long the engine keeps what it cached: %j", (environment, residency) => {
    expect(residencyOf(readSettings(environment))).toEqual(residency);
  });

  it.each([
    ["MEMSTEM_PORT", "eighty"],
    ["MEMSTEM_PORT", "65536"],
    ["MEMSTEM_PORT", "-1"],
    ["MEMSTEM_SOURCE", "mem0"],
    ["MEMSTEM_MEM0_URL", "ftp://127.0.0.1"],
    ["MEMSTEM_MEM0_URL", "127.0.0.1:8000"],
    ["MEMSTEM_MEM0_THRESHOLD", "2"],
    ["MEMSTEM_MEM0_THRESHOLD", "high"],
    ["MEMSTEM_SEARCH_TIMEOUT_MS", "0"],
    ["MEMSTEM_SEARCH_TIMEOUT_MS", "1.5"],
    ["MEMSTEM_MAX_BODY_BYTES", "-1"],
    ["MEMSTEM_MAX_WORKING_MB", "0"],
    ["MEMSTEM_MAX_INDEX_NODES", "9"],
    ["MEMSTEM_CACHE_TTL_SECONDS", "0"],
    ["MEMSTEM_CACHE_TTL_SECONDS", "5m"],
    ["MEMSTEM_CACHE_TOKENS", "0"],
    ["MEMSTEM_CACHE_TOKENS", "64k"],
    ["MEMSTEM_RATE_PER_SECOND", "0"],
    ["MEMSTEM_MAX_CONCURRENT", "0"],
    ["MEMSTEM_MAX_PENDING", "0"],
    ["MEMSTEM_CORS_ORIGINS", "*"],
    ["MEMSTEM_CORS_ORIGINS", "app.example.org"],
    ["MEMSTEM_CORS_ORIGINS", "https://app.example.org/"],
    ["MEMSTEM_WEBHOOK_TOKEN", "short"],
    ["MEMSTEM_KEEP_DAYS", "0"],
    ["MEMSTEM_KEEP_DAYS", "1.5"],
    ["MEMSTEM_SHUTDOWN_MS", "-1"],
    ["MEMSTEM_CACHE_SLOTS", "0"],
    ["MEMSTEM_LOG_LEVEL", "loud"],
    ["MEMSTEM_UPSTREAM_URL", "127.0.0.1:8000/v1"],
    ["MEMSTEM_UPSTREAM_TIMEOUT_MS", "0"],
    ["MEMSTEM_WRITE_BACK", "maybe"],
    ["MEMSTEM_RETENTION", "forever"],
    ["MEMSTEM_TOOL_MEMORIES", "nowhere"],
    ["MEMSTEM_COST", "free"],
    ["MEMSTEM_COST", "{"],
    ["MEMSTEM_COST", '{"cost":{"kind":"money","uncached":1,"written":-1,"cached":0}}'],
    ["MEMSTEM_ENGINE_FAMILY", "gpt"],
    ["MEMSTEM_UPSTREAM_API", "gemini"],
    ["MEMSTEM_ENGINE", "vllm"],
    ["MEMSTEM_ENGINE_SLOTS", "0"],
    ["MEMSTEM_CONTEXT_TOKENS", "8k"],
    ["MEMSTEM_ADAPTIVE_DEPTH", "yes"],
    ["MEMSTEM_ADAPTIVE_DEPTH", "{"],
    ["MEMSTEM_ADAPTIVE_DEPTH", '{"firstBlocks":0}'],
    ["MEMSTEM_ADAPTIVE_DEPTH", '{"growth":1}'],
    ["MEMSTEM_ADAPTIVE_DEPTH", '{"first_blocks":3}'],
    ["MEMSTEM_UNKNOWN", "1"],
    ["MEMSTEM_", ""],
  ])("refuse %s=%j by name", (variable, value) => {
    expect(wrongIn({ [variable]: value })).toEqual([variable]);
  });

  it.each([
    ["rest", "MEMSTEM_MEM0_URL"],
    ["hosted", "MEMSTEM_MEM0_API_KEY"],
  ])("name what the source %s needs", (source, variable) => {
    expect(wrongIn({ MEMSTEM_SOURCE: source })).toEqual([variable]);
  });

  it("take a router or workers, not both", () => {
    expect(() => readSettings({ MEMSTEM_ROUTER: "sglang", MEMSTEM_WORKERS: "gpu-0,gpu-1" })).toThrow(
      /MEMSTEM_ROUTER: conflicts with MEMSTEM_WORKERS/,
    );
  });

  it("name what the engine inside needs, and what it cannot be had with", () => {
    expect(wrongIn({ MEMSTEM_ENGINE: "embedded" })).toEqual(["MEMSTEM_MODEL"]);
    const inside = { MEMSTEM_ENGINE: "embedded", MEMSTEM_MODEL: "m.gguf" };
    expect(wrongIn(inside)).toEqual([]);
    expect(wrongIn({ ...inside, MEMSTEM_UPSTREAM_URL: "http://127.0.0.1:8000/v1" })).toEqual(["MEMSTEM_UPSTREAM_URL"]);
  });

  it("send prompts to the engine inside in vLLM's form, with its salt", () => {
    const inside = { MEMSTEM_ENGINE: "embedded", MEMSTEM_MODEL: "m.gguf" };
    expect(engineFamilyOf(readSettings(inside))).toBe("vllm");
    expect(engineFamilyOf(readSettings({ ...inside, MEMSTEM_ENGINE_FAMILY: "llamacpp" }))).toBe("llamacpp");
    expect(engineFamilyOf(readSettings({}))).toBe("generic");
  });

  it("send prompts to Anthropic's own API in Anthropic's form, and to nothing else there", () => {
    const own = { MEMSTEM_UPSTREAM_API: "anthropic", MEMSTEM_UPSTREAM_URL: "https://api.anthropic.com/v1" };
    expect(engineFamilyOf(readSettings(own))).toBe("anthropic");
    expect(engineFamilyOf(readSettings({ ...own, MEMSTEM_ENGINE_FAMILY: "anthropic" }))).toBe("anthropic");
    expect(wrongIn({ ...own, MEMSTEM_ENGINE_FAMILY: "vllm" })).toEqual(["MEMSTEM_ENGINE_FAMILY"]);
    expect(wrongIn({ MEMSTEM_UPSTREAM_API: "anthropic" })).toEqual(["MEMSTEM_UPSTREAM_API"]);
  });

  it("let one API key do as much as it likes until they say how much", () => {
    expect(keyLimitsOf(readSettings({}))).toEqual({ rate: null, maxConcurrent: null });
    const rate = { MEMSTEM_RATE_PER_SECOND: "50" };
    expect(keyLimitsOf(readSettings(rate)).rate).toEqual({ perSecond: 50, burst: 100 });
    expect(keyLimitsOf(readSettings({ MEMSTEM_MAX_CONCURRENT: "3" }))).toEqual({ rate: null, maxConcurrent: 3 });
  });

  it("have nowhere to write exchanges back to without a source", () => {
    expect(wrongIn({ MEMSTEM_WRITE_BACK: "on", MEMSTEM_SOURCE: "none" })).toEqual(["MEMSTEM_WRITE_BACK"]);
    expect(wrongIn({ MEMSTEM_WRITE_BACK: "on" })).toEqual([]);
  });

  it("pass over the variables of memstem's clients, and read as without them", () => {
    const clients = { MEMSTEM_URL: "http://127.0.0.1:4600", MEMSTEM_USER: "ana" };
    expect(readSettings(clients)).toEqual(readSettings({}));
  });

  it("know every variable that the documentation and the examples name", () => {
    const pages = ["docs", "examples"].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
        .filter((name) => /\.(md|py|yaml)$/.test(name))
        .map((name) => readFileSync(join(ROOT, folder, name), "utf8")),
    );
    const named = pages.flatMap((page) => page.match(/\bMEMSTEM_[A-Z0-9_]*[A-Z0-9]\b/g) ?? []);
    const known = new Set<string>([...SETTING_NAMES.map(variableOf), ...CLIENT_VARIABLES]);
    expect([...new Set(named)].filter((name) => !known.has(name))).toEqual([]);
    expect(CLIENT_VARIABLES.filter((name) => !named.includes(name))).toEqual([]);
  });

  it("name everything that is wrong at once", () => {
    const environment = { MEMSTEM_PORT: "x", MEMSTEM_SOURCE: "rest", MEMSTEM_PROT: "1" };
    expect(wrongIn(environment).toSorted()).toEqual(["MEMSTEM_MEM0_URL", "MEMSTEM_PORT", "MEMSTEM_PROT"]);
  });
});

describe.each(["serve", "compose"])("memstem %s", (command) => {
  const memstem = commands();
  const input = JSON.stringify({ user_id: "ada", query: "Tea?" });

  it.each([
    ["MEMSTEM_PORT", "eighty"],
    ["MEMSTEM_UNKNOWN", "1"],
  ])("names %s=%s and ends with 1 before it touches anything", async (variable, value) => {
    const { code, stdout, stderr } = await memstem.run([command], { input, environment: { [variable]: value } });
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toMatch(new RegExp(`^memstem: ${variable}: .+\\n$`));
    expect(existsSync(memstem.dataDir)).toBe(false);
  });

  const hasProc = existsSync("/proc/self/status");
  const places: readonly (readonly [string, () => string])[] = [
    ["below a file", () => join(memstem.root, "file", "data")],
    ["a file", () => join(memstem.root, "file")],
    // Node's own `mkdir` with `recursive` never comes back from there.
    ...(hasProc
      ? ([
          ["/proc", () => "/proc"],
          ["below /proc", () => "/proc/memstem/data"],
        ] as const)
      : []),
  ];
  it.each(places.flatMap((place) => ["none", "embedded"].map((source) => [...place, source] as const)))(
    "says in one line that the data directory cannot be used: %s",
    async (_where, place, source) => {
      writeFileSync(join(memstem.root, "file"), "");
      const environment = { MEMSTEM_DATA_DIR: place(), MEMSTEM_SOURCE: source };
      const { code, stderr } = await memstem.run([command], { input, environment });
      expect(code).toBe(1);
      expect(stderr).toMatch(/^memstem: cannot open the database .*\n$/);
    },
  );
});
