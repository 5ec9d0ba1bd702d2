import {
  type DiagnosingProvider,
  ENGINE_MODELS,
  type EngineModel,
  type EngineModelName,
  type ResidencyConfig,
} from "../core/index.js";
import type { EngineName } from "../engines/adapters/engine-adapter.js";
import { ENGINES } from "../engines/adapters/engines.js";
import type { BodyRate } from "../http/guards/body.js";
import type { KeyLimits } from "../http/guards/limits.js";
import { InvalidRequestError } from "../service/base/errors.js";
import {
  DEFAULT_IDENTITY_SOURCES,
  type IdentitySource,
  type IdentitySources,
} from "../service/chat/identity-sources.js";
import { hasEmbeddedMem0, installCommand, keptMemories, missingPackages } from "./optional-packages.js";
import { NOTHING_LISTED } from "./session-settings.js";
import { SETTINGS, type Settings } from "./setting-list.js";

export type { Settings } from "./setting-list.js";

/**
 * Reads the settings from the environment; an empty variable counts as absent. Throws {@link InvalidRequestError} naming every variable
 * that is wrong, and every unknown `MEMSTEM_` variable.
 */
export function readSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const issues: { field: string; message: string }[] = [];
  const known = new Set<string>(Object.values(SETTINGS).map(({ variable }) => variable));
  for (const variable of Object.keys(environment)) {
    if (variable.startsWith("MEMSTEM_") && !known.has(variable))
      issues.push({ field: variable, message: "is not a known setting" });
  }
  const values = Object.entries(SETTINGS).map(([name, { variable, schema }]) => {
    const given = environment[variable];
    const parsed = schema.safeParse(given === "" ? undefined : given);
    if (!parsed.success) for (const { message } of parsed.error.issues) issues.push({ field: variable, message });
    return [name, parsed.data] as const;
  });
  const settings = Object.fromEntries(values) as Settings;
  const needs = { hosted: "mem0ApiKey", rest: "mem0Url" } as const;
  const source = sourceOf(settings);
  const unusable = unusableSource(settings);
  if (unusable !== null) issues.push({ field: SETTINGS.source.variable, message: unusable });
  if (source === "embedded" && settings.databaseUrl !== undefined) {
    const message =
      "must be rest, hosted or none with MEMSTEM_DATABASE_URL: the embedded Mem0 keeps its memories in one instance's directory";
    issues.push({ field: SETTINGS.source.variable, message });
  }
  if ((source === "hosted" || source === "rest") && settings[needs[source]] === undefined) {
    issues.push({ field: SETTINGS[needs[source]].variable, message: `is needed for MEMSTEM_SOURCE=${source}` });
  }
  if (settings.engine === "embedded") {
    if (settings.model === undefined)
      issues.push({ field: SETTINGS.model.variable, message: "is needed for MEMSTEM_ENGINE=embedded" });
    if (settings.upstreamUrl !== undefined)
      issues.push({ field: SETTINGS.upstreamUrl.variable, message: "conflicts with MEMSTEM_ENGINE=embedded" });
  }
  if (settings.upstreamApi === "anthropic") {
    const { upstreamApi, upstreamUrl, engineFamily } = SETTINGS;
    if (settings.upstreamUrl === undefined)
      issues.push({ field: upstreamApi.variable, message: `needs ${upstreamUrl.variable}` });
    if (engineFamilyOf(settings) !== "anthropic")
      issues.push({ field: engineFamily.variable, message: `is anthropic with ${upstreamApi.variable}=anthropic` });
  }
  if (settings.cacheDiagnostics === "on" && diagnosticsOf(settings) === null) {
    const { cacheDiagnostics, engineFamily, upstreamApi } = SETTINGS;
    const message = `needs ${engineFamily.variable}=openai-breakpoints or ${upstreamApi.variable}=anthropic: no other upstream has them`;
    issues.push({ field: cacheDiagnostics.variable, message });
  }
  // Undefined where it is not one of them.
  const family: EngineName | undefined = engineFamilyOf(settings);
  const noLogprobs = family && ENGINES[family].noLogprobs;
  if (settings.adaptiveDepth && noLogprobs !== undefined) {
    const { adaptiveDepth: depth } = SETTINGS;
    issues.push({ field: depth.variable, message: `is not available with this engine: ${noLogprobs}` });
  }
  if (settings.rateBurst !== undefined && settings.ratePerSecond === undefined) {
    issues.push({ field: SETTINGS.rateBurst.variable, message: "needs MEMSTEM_RATE_PER_SECOND" });
  }
  if (settings.cacheSlots !== undefined && (settings.cacheTtlSeconds ?? settings.cacheTokens) !== undefined) {
    const message = "conflicts with MEMSTEM_CACHE_TTL_SECONDS and MEMSTEM_CACHE_TOKENS";
    issues.push({ field: SETTINGS.cacheSlots.variable, message });
  }
  if (settings.workers !== undefined && settings.router !== undefined) {
    const message =
      "conflicts with MEMSTEM_WORKERS: memstem names the worker, or a router chooses one by the conversation's key";
    issues.push({ field: SETTINGS.router.variable, message });
  }
  if (settings.writeBack === "on" && source === "none") {
    issues.push({
      field: SETTINGS.writeBack.variable,
      message: `needs a memory source; MEMSTEM_SOURCE is none${settings.source === undefined ? `: ${installCommand("embedded")}` : ""}`,
    });
  }
  if (issues.length > 0) throw new InvalidRequestError(issues);
  return settings;
}

/** Which memory source the settings come to. */
export function sourceOf(settings: Settings): "embedded" | "hosted" | "rest" | "none" {
  if (settings.source !== undefined) return settings.source;
  if (settings.mem0Url !== undefined) return "rest";
  if (settings.mem0ApiKey !== undefined) return "hosted";
  return hasEmbeddedMem0() ? "embedded" : "none";
}

/** Why the memory source that was named, or that is the default, cannot be used; null where it can. */
function unusableSource(settings: Settings): string | null {
  const { source, mem0Url, mem0ApiKey, dataDir } = settings;
  if (source === "embedded" || source === "hosted") {
    const missing = missingPackages(source);
    return missing && `${source} ${missing}`;
  }
  return source === undefined && mem0Url === undefined && mem0ApiKey === undefined ? keptMemories(dataDir) : null;
}

/** What to install for memories to be searched for, where no source was named and none is the default; null elsewhere. */
export function leftOutSource(settings: Settings): string | null {
  return settings.source === undefined && sourceOf(settings) === "none" ? installCommand("embedded") : null;
}

/**
 * Which engine prompts go to. The one inside reads what vLLM reads: a salt that keeps tenants' caches apart. Anthropic's API has
 * Anthropic's models behind it.
 */
export function engineFamilyOf({ engine, engineFamily, upstreamApi }: Settings): EngineName {
  if (engineFamily !== "generic") return engineFamily;
  if (engine === "embedded") return "vllm";
  return upstreamApi === "anthropic" ? "anthropic" : engineFamily;
}

/** What a family costs: engines of one's own take time, providers send a bill. */
const COST_OF_FAMILY: Readonly<Record<EngineName, EngineModelName>> = {
  generic: "gpu",
  vllm: "gpu",
  sglang: "gpu",
  llamacpp: "gpu",
  mistral: "hosted",
  openai: "hosted",
  "openai-breakpoints": "hosted-writes",
  anthropic: "hosted-writes",
};

/** The engine's cost model. Default: its family's; of the engine inside, that of a processor. */
export function engineModelOf(settings: Settings): EngineModel {
  const { engineModel, engine } = settings;
  if (engineModel !== undefined) return engineModel;
  return ENGINE_MODELS[engine === "embedded" ? "cpu" : COST_OF_FAMILY[engineFamilyOf(settings)]];
}

/** Whose cache diagnostics are asked for; null: nobody's. */
export function diagnosticsOf(settings: Settings): DiagnosingProvider | null {
  const { cacheDiagnostics, upstreamApi, upstreamUrl } = settings;
  if (cacheDiagnostics === "off" || upstreamUrl === undefined) return null;
  if (upstreamApi === "anthropic") return "anthropic";
  return engineFamilyOf(settings) === "openai-breakpoints" ? "openai" : null;
}

/** Milliseconds that composing for a chat may take. More than a search may: a prompt without one is better than none. */
export function composeTimeoutOf({ composeTimeoutMs, searchTimeoutMs }: Settings): number {
  return composeTimeoutMs ?? searchTimeoutMs + 3_000;
}

/** Where requests may say who they are: the single headers first. */
export function identityOf({ userHeader, conversationHeader, identity = NOTHING_LISTED }: Settings): IdentitySources {
  const first = (name: string | undefined): readonly IdentitySource[] =>
    name === undefined ? [] : [{ from: "header", name }];
  return {
    user: [...first(userHeader), ...identity.user],
    agent: identity.agent,
    conversation: [...first(conversationHeader), ...identity.conversation],
    sideCall: [...identity.sideCall, ...DEFAULT_IDENTITY_SOURCES.sideCall],
  };
}

/** How fast the settings say that bodies must come. */
export function bodyPaceOf({ bodyTimeoutMs, bodyBytesPerSecond }: Settings): BodyRate {
  return { idleMs: bodyTimeoutMs, bytesPerSecond: bodyBytesPerSecond };
}

/** The limits of one API key. */
export function keyLimitsOf({ ratePerSecond, rateBurst, maxConcurrent }: Settings): KeyLimits {
  const rate = ratePerSecond === undefined ? null : { perSecond: ratePerSecond, burst: rateBurst ?? 2 * ratePerSecond };
  return { rate, maxConcurrent: maxConcurrent ?? null };
}

/** What the engine's cache keeps. Default for the engine inside: its slots. */
export function residencyOf(settings: Settings): ResidencyConfig {
  const { cacheTtlSeconds, cacheSlots, engine, engineSlots } = settings;
  if (cacheTtlSeconds !== undefined) return { kind: "ttl", ttlMs: cacheTtlSeconds * 1_000 };
  const slots = cacheSlots ?? (engine === "embedded" ? engineSlots : undefined);
  return slots === undefined ? { kind: "all" } : { kind: "slots", slots };
}

/**
 * The engine's cache as all users fill it, and how many tokens it holds; null: to be learned. None where a slot holds one prompt, or where a provider bills prompts and says nothing of how
 * much it keeps.
 */
export function sharedCacheOf(settings: Settings): { readonly tokens: number | null } | undefined {
  const { cacheTokens: tokens = null } = settings;
  if (residencyOf(settings).kind === "slots") return undefined;
  return tokens === null && engineModelOf(settings).cost.kind === "money" ? undefined : { tokens };
}

/** The settings as `--help` lists them. */
export function settingsHelp(): string {
  const lines = Object.values(SETTINGS).map(
    ({ variable, help, schema, standard = schema.safeParse(undefined).data }) => {
      return `  ${variable.padEnd(28)} ${help}${standard === undefined ? "" : ` (${String(standard)})`}`;
    },
  );
  return `\nSettings, by environment variable (default):\n${lines.join("\n")}`;
}
