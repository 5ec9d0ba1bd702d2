import { randomUUID } from "node:crypto";
import {
  CachingEngine,
  DEFAULT_POLICY,
  DEFAULT_RETENTION,
  type EngineModel,
  type RequestId,
  residencyModel,
  type ScopeBounds,
} from "../core/index.js";
import { type EngineAdapter, type EngineName, newRequestId } from "../engines/adapters/engine-adapter.js";
import { ENGINES } from "../engines/adapters/engines.js";
import { behindSglangGateway, SESSION_ROUTERS } from "../engines/adapters/session-routers.js";
import type { KvEventPackages } from "../engines/kv-events/kv-events.js";
import type { RecognisedFamily } from "../engines/upstream/engine-family.js";
import { openUpstream, type UpstreamOptions } from "../engines/upstream/upstream.js";
import { openEmbeddedMem0 } from "../memory/embedded-mem0.js";
import { openHostedMem0 } from "../memory/hosted-mem0.js";
import { type MemorySource, withDeadline } from "../memory/memory-source.js";
import { type OwnMem0, openOwnMem0 } from "../memory/own-mem0.js";
import { openRestMem0 } from "../memory/rest-mem0.js";
import { engineFamilyFor } from "../service/base/memprefix-parts.js";
import { type ApiKeys, withConfiguredKey } from "../service/base/tenant.js";
import type { ChatEngine } from "../service/chat/chat.js";
import { KvExpectations, startCacheReadings } from "../service/learning/cache-readings.js";
import { Memprefix, systemClock } from "../service/library/memprefix.js";
import type { Database } from "../store/database.js";
import { StoredApiKeys } from "../store/keys.js";
import { storeIn } from "../store/sql-store.js";
import { type OwnedDatabase, openBeside, openInMemory, openOwned } from "../store/sqlite/open.js";
import { fileDirectory } from "./data-directory.js";
import { type KvEventOptions, startKvEvents } from "./kv-events.js";
import { countO200k, loadO200k } from "./o200k.js";
import type { Settings } from "./setting-list.js";
import {
  composeTimeoutOf,
  engineOf,
  identityOf,
  residencyOf,
  sessionRouterOf,
  sharedCacheOf,
  sourceOf,
  workersOf,
} from "./settings.js";
import { ThreadedPlanning } from "./threaded-planning.js";

/** For the first byte of the engine's answer, and between its bytes: models may think for minutes. */
const UPSTREAM_TIMEOUT_MS = 600_000;
/** For adding or deleting memories: Mem0 calls a model for it, and no prompt waits. */
const WRITE_TIMEOUT_MS = 60_000;

/**
 * Builds the service from settings: the one place that chooses concrete parts. Throws `DatabaseOpenError` where the data directory cannot be
 * used.
 */
export function assemble(settings: Settings, source?: MemorySource | null): Memprefix {
  return assembleOn(openOwned(fileDirectory(settings)).database, settings, { source }).memprefix;
}

/** Builds it for the library, with the caller's own Mem0, if any. */
export function assembleInside(settings: Settings, own: OwnMem0 | null): Memprefix {
  loadO200k();
  return assemble(settings, own === null ? undefined : limited(openOwnMem0(own), settings));
}

/** What settings do not say. */
interface AssembledWith {
  /** Default: the configured one, opened after the database, whose errors on their shared directory are clearer. */
  readonly source?: MemorySource | null | undefined;
  readonly scopeBounds?: ScopeBounds | undefined;
  /** The family that the engine names; null: a setting or its host does. */
  readonly recognised?: RecognisedFamily | null | undefined;
}

/** The service with its API keys: those of its database, which stays open with it, and the configured one. */
export interface AssembledService extends Pick<OwnedDatabase, "announce"> {
  readonly memprefix: Memprefix;
  readonly source: MemorySource | null;
  readonly keys: ApiKeys;
  readonly storedKeys: StoredApiKeys;
}

/** Loads the driver only where a server is configured. */
async function openServer(databaseUrl: string): Promise<Database> {
  const { openPostgres } = await import("../store/postgres/open.js");
  return openPostgres(databaseUrl);
}

/** Opens the configured database beside a running service, for reading and for keys. Rejects with `DatabaseOpenError`. */
export async function openBesideService(settings: Settings): Promise<Database> {
  const { databaseUrl } = settings;
  return databaseUrl === undefined ? openBeside(fileDirectory(settings)) : openServer(databaseUrl);
}

/** Builds the service with its keys, on the PostgreSQL server where one is configured. Rejects with `DatabaseOpenError`. */
export async function assembleWhereStored(settings: Settings, given: AssembledWith = {}): Promise<AssembledService> {
  const { apiKey, databaseUrl } = settings;
  const { database, announce } =
    databaseUrl === undefined
      ? openOwned(fileDirectory(settings))
      : { database: await openServer(databaseUrl), announce: () => {} };
  const storedKeys = new StoredApiKeys(database);
  const keys = apiKey === undefined ? storedKeys : withConfiguredKey(storedKeys, apiKey);
  return { ...assembleOn(database, settings, given), storedKeys, keys, announce };
}

function assembleOn(
  database: Database,
  settings: Settings,
  { source: given, scopeBounds, recognised = null }: AssembledWith,
): Pick<AssembledService, "memprefix" | "source"> {
  let source: MemorySource | null;
  try {
    source = given === undefined ? openSource(settings) : given;
  } catch (error) {
    void database.close();
    throw error;
  }
  const cache = sharedCacheOf(settings);
  const memprefix = new Memprefix({
    store: storeIn(database),
    source,
    scopeBounds,
    untrustedOrigins: settings.untrustedOrigins,
    defaults: {
      policy: settings.policy,
      topK: settings.topK,
      search: settings.mem0Search,
      retention: settings.retention,
      stableTools: settings.stableTools === "on",
      stableInstructions: settings.stableInstructions === "on",
      ...engineOf(settings),
      // It may become known while the service runs.
      get engineFamily() {
        return engineOf(settings, recognised).engineFamily;
      },
      maxPromptTokens: settings.maxPromptTokens ?? null,
      workers: workersOf(settings),
    },
    engines: enginesFor(settings),
    residency: residencyModel(residencyOf(settings)),
    cachingEngine: cache === undefined ? undefined : new CachingEngine(cache.tokens),
    planning: new ThreadedPlanning().plan,
    countTokens: countO200k,
    newRequestId,
    now: systemClock,
  });
  return { memprefix, source };
}

/** How a test waits for the engine. Default: the process's timers, and as long between bytes as for the first. */
export type Waits = Partial<Pick<UpstreamOptions, "after" | "idleMs" | "timeoutMs">>;

/** The engine that chats are forwarded to; null: not configured. */
export function openChatEngine(
  settings: Settings,
  waits: Waits = {},
  recognised: RecognisedFamily | null = null,
): ChatEngine | null {
  const { upstreamUrl: url, upstreamApiKey: apiKey, writeBack, warmUp, adaptiveDepth, maxPromptTokens } = settings;
  if (url === undefined) return null;
  const family = () => engineFamilyFor(engineOf(settings, recognised), null);
  return {
    upstream: openUpstream({ url, apiKey, timeoutMs: UPSTREAM_TIMEOUT_MS, ...waits }),
    hasOwnKey: apiKey !== undefined,
    readUsage: (answer) => ENGINES[family()].readUsage(answer),
    family,
    writeBack: writeBack === "on",
    warmUp: warmUp === "on",
    adaptiveDepth,
    // A configured limit replaces the engine's own.
    readsLimit: maxPromptTokens === undefined,
    composeTimeoutMs: composeTimeoutOf(settings),
    identity: identityOf(settings),
    defaultUser: settings.defaultUser,
    router: sessionRouterOf(settings),
  };
}

/** Where the engine's cache events go. */
interface FollowedEngine extends Pick<KvEventOptions, "onFollowed" | "onFault"> {
  readonly recognised: RecognisedFamily | null;
  /** Null: cache events are not followed. */
  readonly packages: KvEventPackages | null;
  readonly waits?: Waits | undefined;
}

/** The engine that chats are forwarded to. `stop` ends the reading of its cache events. */
export function openFollowedEngine(
  settings: Settings,
  cache: CachingEngine | undefined,
  { packages, waits, recognised, ...on }: FollowedEngine,
): { readonly chat: ChatEngine | null; stop(): Promise<void> } {
  const opened = openChatEngine(settings, waits, recognised);
  if (opened === null || cache === undefined) return { chat: opened, stop: async () => {} };
  const { upstream } = opened;
  const of = { cache, upstream, now: systemClock };
  const chat = { ...opened, expectations: new KvExpectations(cache, upstream, of.now) };
  const stopReadings = startCacheReadings(of);
  const { kvEvents: sources } = settings;
  const stopEvents = packages === null || sources === "off" ? null : startKvEvents({ ...of, ...on, sources, packages });
  return {
    chat,
    async stop() {
      stopReadings();
      await stopEvents?.();
    },
  };
}

function enginesFor(settings: Settings): Readonly<Record<EngineName, EngineAdapter>> {
  const router = sessionRouterOf(settings);
  const sglang = router === SESSION_ROUTERS.sglang ? behindSglangGateway(ENGINES.sglang) : ENGINES.sglang;
  return { ...ENGINES, sglang };
}

/** The configured memory source, with its deadlines; null: none. */
export function openSource(settings: Settings): MemorySource | null {
  const source = openBareSource(settings);
  return source && limited(source, settings);
}

function limited(source: MemorySource, { searchTimeoutMs }: Settings): MemorySource {
  return withDeadline(source, { searchMs: searchTimeoutMs, writeMs: WRITE_TIMEOUT_MS });
}

function openBareSource(settings: Settings): MemorySource | null {
  const { mem0Url: url, mem0ApiKey: apiKey, dataDir } = settings;
  switch (sourceOf(settings)) {
    case "embedded":
      return openEmbeddedMem0({ dataDir });
    case "hosted":
      return openHostedMem0({ apiKey: apiKey ?? "", ...(url === undefined ? {} : { url }) });
    case "rest":
      return openRestMem0({ url: url ?? "", ...(apiKey === undefined ? {} : { apiKey }) });
    case "none":
      return null;
  }
}

/** A service without users or a memory source, on a database in memory. `cachingEngine`: shared by all users; default: unlimited. */
export function openMeasuredMemprefix(
  cost: EngineModel,
  now: () => number,
  cachingEngine?: CachingEngine,
  untrustedOrigins?: ReadonlySet<string>,
): Memprefix {
  return new Memprefix({
    store: storeIn(openInMemory()),
    source: null,
    defaults: { policy: DEFAULT_POLICY, retention: DEFAULT_RETENTION, engine: cost, engineFamily: "generic" },
    engines: ENGINES,
    countTokens: countO200k,
    newRequestId: () => randomUUID() as RequestId,
    cachingEngine,
    untrustedOrigins,
    now,
  });
}
