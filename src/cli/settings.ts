import { closest } from "fastest-levenshtein";
import { providerOf } from "../core/cost/prices.js";
import type { ResidencyConfig } from "../core/index.js";
import { ENGINES } from "../engines/adapters/engines.js";
import type { SessionRouter } from "../engines/adapters/session-routers.js";
import type { RecognisedFamily } from "../engines/upstream/engine-family.js";
import { InvalidRequestError } from "../service/base/errors.js";
import { type EngineDefaults, engineFamilyFor, engineModelFor } from "../service/base/memprefix-parts.js";
import { DEFAULT_IDENTITY_SOURCES, type IdentitySources } from "../service/chat/chat-request.js";
import { hasEmbeddedMem0, installCommand, keptMemories, missingPackages } from "./package.js";
import {
  CLIENT_VARIABLES,
  defaultOf,
  NOTHING_LISTED,
  SETTING_NAMES,
  SETTING_TITLES,
  SETTINGS,
  type Settings,
  variableOf,
} from "./setting-list.js";

/** An invalid flag or setting; each issue names it. */
export class UsageError extends InvalidRequestError {}

export function usageError(field: string, message: string): UsageError {
  return new UsageError([{ field, message }]);
}

/** Flags of `memprefix serve`, by their settings. */
export const SERVE_FLAGS = {
  host: "--host",
  port: "--port",
  dataDir: "--data-dir",
  upstreamUrl: "--upstream",
} as const;
type Flags = { readonly [K in keyof typeof SERVE_FLAGS]?: string | undefined };

/**
 * Reads the settings from flags, else from the environment. An empty variable counts as absent; unknown ones are ignored
 * ({@link unknownVariables} lists them). Throws {@link UsageError} naming everything that is wrong.
 */
export function readSettings(environment: Readonly<Record<string, string | undefined>>, flags: Flags = {}): Settings {
  const issues: { field: string; message: string }[] = [];
  const given: Partial<Record<keyof Settings, string | undefined>> = flags;
  const named: Partial<Record<keyof Settings, string>> = SERVE_FLAGS;
  const fieldOf = (name: keyof Settings) => (given[name] === undefined ? undefined : named[name]) ?? variableOf(name);
  const values = SETTING_NAMES.map((name) => {
    const text = given[name] ?? environment[variableOf(name)];
    const parsed = SETTINGS[name].safeParse(text === "" ? undefined : text);
    for (const { message } of parsed.error?.issues ?? []) issues.push({ field: fieldOf(name), message });
    return [name, parsed.data] as const;
  });
  const settings = Object.fromEntries(values) as Settings;
  for (const [name, message] of conflictsIn(settings)) issues.push({ field: fieldOf(name), message });
  if (issues.length > 0) throw new UsageError(issues);
  return settings;
}

/** Variables that begin with `MEMPREFIX_` and are no setting, each with the nearest setting. */
export function unknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
): { readonly variable: string; readonly nearest: string }[] {
  const known: readonly string[] = [...SETTING_NAMES.map(variableOf), ...CLIENT_VARIABLES];
  return Object.keys(environment)
    .filter((variable) => variable.startsWith("MEMPREFIX_") && !known.includes(variable))
    .map((variable) => ({ variable, nearest: closest(variable, known) }));
}

export const DEFAULT_USER_WITH_KEYS = "conflicts with API keys: whoever has one names its users";

/** Conflicts between settings. A setting that could not be read is undefined. */
function* conflictsIn(settings: Settings): Generator<readonly [name: keyof Settings, message: string]> {
  const { cacheSize, cacheTtlSeconds } = settings;
  const source = sourceOf(settings);
  const unusable = unusableSource(settings);
  if (unusable !== null) yield ["source", unusable];
  if (source === "embedded" && settings.databaseUrl !== undefined) {
    const reason = "the embedded Mem0 keeps its memories in one instance's directory";
    yield ["source", `must be rest, hosted or none with MEMPREFIX_DATABASE_URL: ${reason}`];
  }
  const needed = source === "hosted" ? "mem0ApiKey" : source === "rest" ? "mem0Url" : null;
  if (needed !== null && settings[needed] === undefined) yield [needed, `is needed for MEMPREFIX_SOURCE=${source}`];
  const { noLogprobs } = ENGINES[engineFamilyFor(engineOf(settings), null)];
  if (settings.adaptiveDepth && noLogprobs !== undefined)
    yield ["adaptiveDepth", `is not available with this engine: ${noLogprobs}`];
  if (settings.defaultUser !== undefined && settings.apiKey !== undefined)
    yield ["defaultUser", DEFAULT_USER_WITH_KEYS];
  if (cacheSize !== undefined && "slots" in cacheSize && cacheTtlSeconds !== undefined)
    yield ["cacheSize", "in slots conflicts with MEMPREFIX_CACHE_TTL_SECONDS"];
  if (settings.writeBack === "on" && source === "none") {
    const install = settings.source === undefined ? `: ${installCommand("embedded")}` : "";
    yield ["writeBack", `needs a memory source; MEMPREFIX_SOURCE is none${install}`];
  }
}

/** The memory source, configured or by default. */
export function sourceOf(settings: Settings): "embedded" | "hosted" | "rest" | "none" {
  if (settings.source !== undefined) return settings.source;
  if (settings.mem0Url !== undefined) return "rest";
  if (settings.mem0ApiKey !== undefined) return "hosted";
  return hasEmbeddedMem0() ? "embedded" : "none";
}

/** Why the memory source cannot be used; null where it can. */
function unusableSource(settings: Settings): string | null {
  const { source, mem0Url, mem0ApiKey, dataDir } = settings;
  if (source === "embedded" || source === "hosted") {
    const missing = missingPackages(source);
    return missing && `${source} ${missing}`;
  }
  return source === undefined && mem0Url === undefined && mem0ApiKey === undefined ? keptMemories(dataDir) : null;
}

/** What to install where no source was configured and none is the default; null elsewhere. */
export function leftOutSource(settings: Settings): string | null {
  return settings.source === undefined && sourceOf(settings) === "none" ? installCommand("embedded") : null;
}

/** Whether the engine has to say of which family it is: neither a setting nor its host does. */
export function hasUnknownFamily(settings: Settings): boolean {
  const { engineFamily, engineHost = null } = engineOf(settings);
  return settings.upstreamUrl !== undefined && engineFamily === null && providerOf(engineHost, null) === null;
}

/** The engine that prompts go to by default, and its cost model; null: its provider's prices, else time on a GPU. */
export function engineOf(
  { engineCost, engineFamily, upstreamUrl }: Settings,
  recognised: Pick<RecognisedFamily, "name"> | null = null,
): EngineDefaults {
  const engineHost = upstreamUrl === undefined ? null : new URL(upstreamUrl).hostname;
  return { engine: engineCost ?? null, engineFamily: engineFamily ?? recognised?.name ?? null, engineHost };
}

/** For composing a chat: the search, and as long again for the rest on a loaded machine. After that, a prompt goes without memories. */
export function composeTimeoutOf({ searchTimeoutMs }: Settings): number {
  return searchTimeoutMs + 3_000;
}

/** Where requests may name their user, and side calls. */
export function identityOf({ identity = NOTHING_LISTED }: Settings): IdentitySources {
  return { ...identity, sideCall: [...identity.sideCall, ...DEFAULT_IDENTITY_SOURCES.sideCall] };
}

export function residencyOf({ cacheTtlSeconds, cacheSize }: Settings): ResidencyConfig {
  if (cacheTtlSeconds !== undefined) return { kind: "ttl", ttlMs: cacheTtlSeconds * 1_000 };
  return cacheSize !== undefined && "slots" in cacheSize ? { kind: "slots", slots: cacheSize.slots } : { kind: "all" };
}

/**
 * The engine's cache as all users fill it, and its tokens; null: to be learned. Undefined where a slot holds one prompt, or where a provider
 * bills prompts and does not publish its cache's size.
 */
export function sharedCacheOf(settings: Settings): { readonly tokens: number | null } | undefined {
  const { cacheSize } = settings;
  const tokens = cacheSize !== undefined && "tokens" in cacheSize ? cacheSize.tokens : null;
  if (residencyOf(settings).kind === "slots") return undefined;
  return tokens === null && engineModelFor(engineOf(settings), null).cost.kind === "money" ? undefined : { tokens };
}

/** The replicas that memprefix routes prompts to; undefined for none. */
export function workersOf({ router }: Settings): readonly string[] | undefined {
  return router !== undefined && "workers" in router ? router.workers : undefined;
}

/** The router that gets a key per conversation; null for none. */
export function sessionRouterOf({ router }: Settings): SessionRouter | null {
  return router === undefined || "workers" in router ? null : router;
}

export function addressOf({ host, port }: Settings): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Settings as `--help` lists them: these, or all under their headings. */
export function settingsHelp(names?: readonly (keyof Settings)[]): string {
  const lines = (names ?? SETTING_NAMES).map((name) => {
    const title = names === undefined ? SETTING_TITLES[name] : undefined;
    const standard = defaultOf(name);
    const line = `  ${variableOf(name).padEnd(28)} ${SETTINGS[name].description}${standard === undefined ? "" : ` (${standard})`}`;
    return title === undefined ? line : `\n${title}\n${line}`;
  });
  return `\nSettings, by environment variable (default):\n${lines.join("\n")}`;
}
