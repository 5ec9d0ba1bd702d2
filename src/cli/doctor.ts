import { existsSync } from "node:fs";
import { join } from "node:path";
import { v7 as uuidV7 } from "uuid";
import { APIS } from "../apis/apis.js";
import { createMemprefixClient } from "../client/client.js";
import { MemprefixError } from "../client/errors.js";
import type { UserId } from "../core/index.js";
import { OWN_NAME, type Upstream, UpstreamError } from "../engines/upstream/upstream.js";
import { MemorySourceError } from "../memory/memory-source.js";
import { StoreUnavailableError } from "../service/base/errors.js";
import { DEFAULT_TENANT } from "../service/base/tenant.js";
import { DatabaseOpenError } from "../store/open-error.js";
import { storeIn } from "../store/sql-store.js";
import { DATABASE_FILE } from "../store/sqlite/open.js";
import { openBesideService, openChatEngine, openSource } from "./assemble.js";
import { databasesIn } from "./data-directory.js";
import { EngineRefusal, familyBy, openProbes, type Probe, type ProbedEngine, plain, received } from "./engine-probe.js";
import type { Invocation } from "./invocation.js";
import { checkIsolation } from "./isolation.js";
import type { Settings } from "./setting-list.js";
import { addressOf, leftOutSource, readSettings, sourceOf } from "./settings.js";
import { loadEveryUser, quickCheck } from "./stored-users.js";

export interface DoctorOptions {
  /** Whose memories are searched. */
  readonly user: string;
  readonly model?: string;
  /** Whether tenants' caches are checked to be apart, and nothing else. */
  readonly isolation?: true;
  readonly keys?: readonly string[];
  readonly json?: true;
}

/** Most urgent first: what breaks everything, what costs whole prompts, what costs knowledge. */
const PARTS = ["store", "engine", "service", "memories", "cache", "identity", "apis", "memprefix", "gateway"] as const;

/** One check's result. `change`: works, but a setting would improve it; `unknown`: cannot be checked now. */
interface Finding {
  readonly part: (typeof PARTS)[number];
  readonly state: "ok" | "change" | "broken" | "unknown";
  readonly says: string;
  readonly advice?: string;
}

/** Prompts of the running service to examine. */
const LAST_PROMPTS = 100;

/** Checks everything that the settings name and prints recommended changes, most valuable first. Exit code 1 where something is broken. */
export async function runDoctor(options: DoctorOptions, call: Invocation): Promise<void> {
  const { user, model = null, isolation, keys = [], json = false } = options;
  const settings = readSettings(call.env);
  const findings: readonly Finding[] = isolation
    ? await checkIsolation(settings, { model, keys })
    : [
        ...(await store(settings)),
        await memories(settings, user),
        ...(await engine(settings, model)),
        ...(await service(settings)),
      ];
  if (findings.some(({ state }) => state === "broken")) call.exitCode = 1;
  const byGain = findings.toSorted((a, b) => rank(a) - rank(b));
  if (json) {
    call.print(JSON.stringify(byGain, null, 2));
    return;
  }
  for (const { part, state, says } of findings) call.print(`${part.padEnd(9)} ${state.padEnd(8)} ${says}`);
  const toDo = byGain.flatMap(({ advice = [] }) => advice).map((advice, at) => `${at + 1}. ${advice}`);
  call.print(
    toDo.length === 0 ? "\nNothing to change." : `\nRecommended changes, most valuable first:\n${toDo.join("\n")}`,
  );
}

const STATES: readonly Finding["state"][] = ["broken", "change", "unknown", "ok"];
const rank = ({ part, state }: Finding) => STATES.indexOf(state) * PARTS.length + PARTS.indexOf(part);

/** Whether every database is sound, and everything stored loads. */
async function store(settings: Settings): Promise<readonly Finding[]> {
  const part = "store";
  const { dataDir, databaseUrl } = settings;
  const broken = (says: string): Finding => ({ part, state: "broken", says, advice: RESTORE });
  const damaged = databasesIn(dataDir).flatMap((name) =>
    quickCheck(join(dataDir, name)).map((line) => broken(`${name}: ${plain(line)}`)),
  );
  if (damaged.length > 0) return damaged.slice(0, MAX_DAMAGES);
  if (databaseUrl === undefined && !databasesIn(dataDir).includes(DATABASE_FILE))
    return [{ part, state: "ok", says: `${dataDir} has no database yet; the service creates it` }];
  try {
    const database = await openBesideService(settings);
    const { users, requests, findings } = await loadEveryUser(storeIn(database)).finally(() => database.close());
    if (findings.length > 0) return findings.map(broken);
    return [{ part, state: "ok", says: `${requests} requests of ${users} users load` }];
  } catch (error) {
    if (error instanceof DatabaseOpenError || error instanceof StoreUnavailableError) return [broken(error.message)];
    throw error;
  }
}

const RESTORE =
  "restore the database from a backup; if only indexes are damaged, `sqlite3 FILE reindex` is enough (docs/operations.md)";
/** SQLite lists at most 100 for each file. */
const MAX_DAMAGES = 20;

async function memories(settings: Settings, user: string): Promise<Finding> {
  const part = "memories";
  if (sourceOf(settings) === "embedded" && !existsSync(settings.dataDir))
    return { part, state: "ok", says: "the embedded Mem0; its files are made when the service first starts" };
  const source = openSource(settings);
  if (source === null) {
    const install = leftOutSource(settings);
    const advice = install === null ? {} : { advice: `for memories that memprefix searches itself: ${install}` };
    return { part, state: "unknown", says: "no source is configured: requests bring their memories", ...advice };
  }
  try {
    const scope = { tenant: DEFAULT_TENANT.name, userId: user as UserId, agentId: null };
    const search = () => source.search({ scope, query: "What is known of me?", topK: settings.topK }, NO_STOP);
    // Loading a model may take longer than a search is given.
    await source.load?.();
    await search();
    const began = performance.now();
    const found = await search();
    const ms = Math.round(performance.now() - began);
    const says = `${source.name} found ${found.length} for ${plain(user)} in ${ms} ms`;
    if (ms <= settings.searchTimeoutMs / 2) return { part, state: "ok", says };
    const advice = `a search takes ${ms} ms, and is given up after ${settings.searchTimeoutMs}: raise MEMPREFIX_SEARCH_TIMEOUT_MS`;
    return { part, state: "change", says, advice };
  } catch (error) {
    if (!(error instanceof MemorySourceError)) throw error;
    const says = plain(error.message);
    return { part, state: "broken", says, advice: mem0Advice(error.failure.kind, source.owned) };
  } finally {
    await source.close();
  }
}

function mem0Advice(failure: MemorySourceError["failure"]["kind"], isEmbedded: boolean): string {
  if (failure === "timeout") return "try again when the machine is less busy, or raise MEMPREFIX_SEARCH_TIMEOUT_MS";
  if (isEmbedded) return "look at the embedded Mem0's files in MEMPREFIX_DATA_DIR, or reinstall what it needs";
  return failure === "refused"
    ? "make Mem0 answer: MEMPREFIX_MEM0_API_KEY, MEMPREFIX_SOURCE and MEMPREFIX_MEM0_URL say whom memprefix calls, and how"
    : "start Mem0, or correct MEMPREFIX_MEM0_URL";
}

const NO_STOP = new AbortController().signal;

async function engine(settings: Settings, model: string | null): Promise<readonly Finding[]> {
  const part = "engine";
  const opened = openChatEngine(settings);
  if (opened === null) {
    const advice = "for the proxy and its reports, name the engine: MEMPREFIX_UPSTREAM_URL=http://127.0.0.1:8000/v1";
    return [{ part, state: "unknown", says: "none is configured: only /compose is served", advice }];
  }
  const { upstream } = opened;
  try {
    const probed = await openProbes(upstream, familyBy(settings, upstream), model);
    const asking = probed.newPrompts();
    const tenant = uuidV7();
    const probe = (question: string) => asking(question).send(tenant);
    // A new prompt; the same again; the same memories with another question.
    const probes = [await probe("Say yes."), await probe("Say yes."), await probe("Say no.")] as const;
    return [answering(probed, probes[0], upstream.name), cached(probes), await routes(upstream)];
  } catch (error) {
    if (error instanceof EngineRefusal)
      return [{ part, state: "broken", says: `${upstream.name}: ${error.message}`, advice: error.advice }];
    if (!(error instanceof UpstreamError)) throw error;
    return [
      { part, state: "broken", says: error.message, advice: "start the engine, or correct MEMPREFIX_UPSTREAM_URL" },
    ];
  }
}

/** Statuses for an absent route. */
const ABSENT: ReadonlySet<number> = new Set([404, 405, 501]);

/** Finds the APIs that the engine serves: it rejects an empty body where it has the route. */
async function routes(upstream: Upstream): Promise<Finding> {
  const part = "apis";
  const asked = Object.values(APIS).map(async ({ path }) => {
    const call = { method: "POST", path, query: "", headers: [OWN_NAME], body: "{}" } as const;
    return { path, status: (await received(upstream, call)).status };
  });
  const answers = await Promise.all(asked);
  const lacking = answers.filter(({ status }) => ABSENT.has(status)).map(({ path }) => `/v1/${path}`);
  if (lacking.length === 0) return { part, state: "ok", says: "it serves chat completions, Messages and Responses" };
  const says = `it lacks ${lacking.join(" and ")}: use an API that it has, or LiteLLM in front of it`;
  return { part, state: "ok", says };
}

function answering({ model, family }: ProbedEngine, { ms }: Probe, name: string): Finding {
  const says = `${name} answers as ${plain(model)} in ${Math.round(ms)} ms; family ${family}`;
  return { part: "engine", state: "ok", says };
}

function cached([fresh, again, changed]: readonly [fresh: Probe, again: Probe, changed: Probe]): Finding {
  const part = "cache";
  const { cachedTokens: second, promptTokens: of } = again.usage;
  const third = changed.usage.cachedTokens;
  const times = `a new prompt took ${Math.round(fresh.ms)} ms, the same again ${Math.round(again.ms)} ms`;
  if (second == null || third == null || of === null) {
    const advice =
      "let the engine report cached tokens: vLLM --enable-prompt-tokens-details, SGLang --enable-cache-report (docs/engines.md)";
    return { part, state: "unknown", says: `its answers have no cached tokens; ${times}`, advice };
  }
  const says = `${second} of ${of} tokens hit the second time, ${third} with another question; ${times}`;
  if (second === 0) {
    const advice =
      "turn the engine's prefix cache on: without it nothing that memprefix does saves anything (vLLM --enable-prefix-caching; docs/engines.md)";
    return { part, state: "broken", says, advice };
  }
  if (third > 0) return { part, state: "ok", says };
  const advice = "a prompt hits only where all of it was cached: see docs/engines.md for this engine's cache";
  return { part, state: "change", says, advice };
}

/** The service that the settings would start, if it runs. */
async function service(settings: Settings): Promise<readonly Finding[]> {
  const part = "service";
  const { apiKey } = settings;
  const url = addressOf(settings);
  const client = createMemprefixClient({ url, apiKey, timeoutMs: 5_000 });
  try {
    const { status, version, degraded = [] } = await client.health();
    const failing = degraded.map((one) => `${one.part}: ${one.reason}`).join("; ");
    const state = status === "ok" ? "ok" : "broken";
    const says = `${url}, memprefix ${version}, is ${status}${failing === "" ? "" : `: ${plain(failing)}`}`;
    const advice =
      state === "ok" ? {} : { advice: "what the running service says of its parts comes first: see its log" };
    return [{ part, state, says, ...advice }, await identity(client, await namelessChats(url, apiKey))];
  } catch (error) {
    if (error instanceof MemprefixError && error.status !== null) {
      const says = `${url} answers, and is not memprefix`;
      return [{ part, state: "broken", says, advice: "choose another MEMPREFIX_PORT" }];
    }
    return [{ part, state: "unknown", says: `none runs at ${url}: memprefix serve starts it` }];
  }
}

/** Chats that named no user since the service started, by its metrics; 0 where these cannot be read. */
async function namelessChats(url: string, apiKey: string | undefined): Promise<number> {
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const answer = await fetch(`${url}/metrics`, { headers, signal: AbortSignal.timeout(5_000) }).catch(() => null);
  const metrics = (await answer?.text()) ?? "";
  return Number(/^memprefix_not_composed_chats_total\{reason="no_user"\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
}

/** Whether requests name their user and conversation. */
async function identity(
  client: Pick<ReturnType<typeof createMemprefixClient>, "usageRequests">,
  nameless: number,
): Promise<Finding> {
  const part = "identity";
  if (nameless > 0) {
    const says = `${nameless} chats named no user, and went to the engine without memories`;
    const advice =
      "name the user: X-Memprefix-User, the body's own field for it, a base URL /users/{user}/v1, or MEMPREFIX_IDENTITY (docs/identity.md)";
    return { part, state: "change", says, advice };
  }
  try {
    const { requests } = await client.usageRequests({ limit: LAST_PROMPTS });
    if (requests.length === 0)
      return { part, state: "unknown", says: "no prompt came yet: send a chat with X-Memprefix-User and look again" };
    const named = requests.filter(({ conversationId }) => conversationId !== null).length;
    const users = new Set(requests.map(({ userId }) => userId)).size;
    const says = `of the last ${requests.length} prompts ${named} name a conversation; users: ${users}`;
    if (named >= requests.length / 2) return { part, state: "ok", says };
    const advice =
      "name conversations (X-Memprefix-Conversation, or MEMPREFIX_IDENTITY for a header that clients send already): without one, every turn is a prompt of its own (docs/identity.md)";
    return { part, state: "change", says, advice };
  } catch (error) {
    if (!(error instanceof MemprefixError) || error.status === null) throw error;
    const says =
      error.status === 401 ? "to see it, the service's key is needed: MEMPREFIX_API_KEY" : "no usage is recorded";
    return { part, state: "unknown", says };
  }
}
