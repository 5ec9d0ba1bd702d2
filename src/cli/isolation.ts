import { digestOf } from "../core/index.js";
import { ENGINES } from "../engines/adapters/engines.js";
import { openUpstream, type Upstream, UpstreamError } from "../engines/upstream/upstream.js";
import { newSecret } from "../service/base/tenant.js";
import { openChatEngine } from "./assemble.js";
import { EngineRefusal, familiesOf, openProbes, type Probe, type ProbedEngine } from "./engine-probe.js";
import type { Settings } from "./setting-list.js";
import { addressOf } from "./settings.js";

/** A layer that a tenant's salt passes, or that ignores it; `broken`: another tenant's prompt hits. */
export interface IsolationFinding {
  readonly part: "memprefix" | "gateway" | "engine";
  readonly state: "ok" | "broken" | "unknown";
  readonly says: string;
  readonly advice?: string;
}

export interface IsolationOptions {
  readonly model: string | null;
  /** The engine's own base URL, where the upstream is a gateway in front of it; null: not known. */
  readonly engineUrl: string | null;
  /** memprefix's keys of two tenants; empty: what the running service does with keys is not tried. */
  readonly keys: readonly string[];
}

/** Sends pairs of probes through the upstream, and says which layer lets one tenant's prompt hit another's cache. */
export async function checkIsolation(
  settings: Settings,
  { model, engineUrl, keys }: IsolationOptions,
): Promise<readonly IsolationFinding[]> {
  const opened = openChatEngine(settings);
  if (opened === null)
    return [
      { part: "engine", state: "unknown", says: "none is configured", advice: "name it: MEMPREFIX_UPSTREAM_URL" },
    ];
  const { upstream } = opened;
  const { upstreamApiKey: apiKey } = settings;
  try {
    const probed = await openProbes(upstream, await familiesOf(settings, upstream), model);
    const findings = [await throughUpstream(upstream, probed, engineUrl === null ? null : { engineUrl, apiKey })];
    return keys.length < 2 ? findings : [await throughService(settings, probed, keys), ...findings];
  } catch (error) {
    if (error instanceof EngineRefusal)
      return [{ part: "engine", state: "unknown", says: `${upstream.name}: ${error.message}`, advice: error.advice }];
    if (!(error instanceof UpstreamError)) throw error;
    return [
      { part: "engine", state: "unknown", says: error.message, advice: "start it, or correct MEMPREFIX_UPSTREAM_URL" },
    ];
  }
}

/** Sends one prompt, as one of these. */
type Sender = () => Promise<Probe>;

/** Whether prompts of others hit what one's own prompt left in the cache. */
type Verdict =
  /** Tokens: of the own prompt that hit, and the most that hit for others. */
  | { readonly kind: "apart" | "shared"; readonly own: number; readonly others: number }
  | { readonly kind: "unknown"; readonly why: string };

/** A router may send a prompt to a replica that does not have it. */
const MOST_ROUNDS = 4;

/**
 * Compares prompts that nobody sent before. Each of the `others` must miss what the `own` one hits. A hit of more than half of that is no noise:
 * an engine's template is shorter.
 */
async function compared(own: Sender, others: readonly Sender[]): Promise<Verdict> {
  const fresh = (await own()).usage.cachedTokens;
  if (fresh === null) return { kind: "unknown", why: "its answers have no cached tokens" };
  let hit = fresh;
  for (let round = 1; round < MOST_ROUNDS; round++) {
    const { cachedTokens, promptTokens } = (await own()).usage;
    hit = Math.max(hit, cachedTokens ?? 0);
    if (hit - fresh > (promptTokens ?? 0) / 2) break;
    if (round === MOST_ROUNDS - 1)
      return { kind: "unknown", why: "the same prompt does not hit, not even for its own tenant" };
  }
  let most = 0;
  for (const other of others) most = Math.max(most, (await other()).usage.cachedTokens ?? 0);
  return { kind: most - fresh > (hit - fresh) / 2 ? "shared" : "apart", own: hit, others: most };
}

const QUESTION = "Say yes.";

/** Tenants as memprefix would name them to the engine, and a client's own salts. */
async function tenantsApart(probed: ProbedEngine, salt: string | undefined): Promise<Verdict> {
  const [one, second, third] = [newSecret(), newSecret(), newSecret()].map((secret) => digestOf(secret));
  const { send } = probed.newPrompts()(QUESTION);
  const as =
    (tenant = "", more = {}): Sender =>
    () =>
      send(tenant, more);
  const ownSalt = salt === undefined ? [] : [as(one, { [salt]: digestOf(newSecret()) })];
  return compared(as(one), [as(second), as(third), ...ownSalt]);
}

async function throughUpstream(
  upstream: Upstream,
  probed: ProbedEngine,
  direct: { readonly engineUrl: string; readonly apiKey: string | undefined } | null,
): Promise<IsolationFinding> {
  const { family } = probed;
  const { salt } = ENGINES[family];
  const verdict = await tenantsApart(probed, salt);
  if (verdict.kind === "unknown") {
    const advice = "let the engine cache prefixes and report cached tokens (docs/engines.md)";
    return { part: "engine", state: "unknown", says: `${upstream.name}: ${verdict.why}`, advice };
  }
  const of = `${verdict.others} of the ${verdict.own} tokens that hit for one tenant hit for another`;
  if (verdict.kind === "apart")
    return { part: "engine", state: "ok", says: `${upstream.name}: ${of}, or for another salt` };
  if (salt === undefined) {
    const says = `memprefix sends no salt to the family ${family}, whose tenants share one upstream key and its cache: ${of}`;
    const advice = "give each tenant an engine, or an upstream key, of its own";
    return { part: "memprefix", state: "broken", says, advice };
  }
  const part = direct === null ? await layerOf(probed, salt) : await layerBehind(direct, probed, salt);
  const says =
    part === "engine"
      ? `the engine gets ${salt} and ignores it: ${of}`
      : `a gateway drops or replaces ${salt}, or the engine does not know it: ${of}`;
  const advice =
    part === "engine"
      ? `use an engine, or a version of it, that keeps caches apart by ${salt}, or one engine for each tenant`
      : `let the gateway at ${upstream.name} forward ${salt} unmodified; --engine-url URL tries the engine behind it`;
  return { part, state: "broken", says, advice };
}

/** An engine that knows the field rejects a salt that is not text. Whoever takes it has dropped the field. */
async function layerOf(probed: ProbedEngine, salt: string): Promise<"gateway" | "engine"> {
  try {
    await probed
      .newPrompts()(QUESTION)
      .send(newSecret(), { [salt]: { not: "a salt" } });
    return "gateway";
  } catch (error) {
    if (error instanceof EngineRefusal && (error.status === 400 || error.status === 422)) return "engine";
    throw error;
  }
}

async function layerBehind(
  { engineUrl: url, apiKey }: { readonly engineUrl: string; readonly apiKey: string | undefined },
  { model, family }: ProbedEngine,
  salt: string,
): Promise<"gateway" | "engine"> {
  const engine = openUpstream({ url, apiKey, timeoutMs: 60_000 });
  const probed = await openProbes(engine, () => family, null).catch(() => openProbes(engine, () => family, model));
  return (await tenantsApart(probed, salt)).kind === "apart" ? "gateway" : "engine";
}

/** Whether the running service gives two keys salts of their own. */
async function throughService(
  settings: Settings,
  { model, family, newPrompts }: ProbedEngine,
  [one = "", ...others]: readonly string[],
): Promise<IsolationFinding> {
  const part = "memprefix";
  const url = addressOf(settings);
  const { readUsage } = ENGINES[family];
  const { messages } = newPrompts()(QUESTION);
  const as =
    (key: string): Sender =>
    async () => {
      const headers = {
        "content-type": "application/json",
        authorization: `Bearer ${key}`,
        "x-memprefix-bypass": "true",
      };
      const body = JSON.stringify({ model, messages, max_tokens: 16 });
      const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
      if (!answer.ok)
        throw new EngineRefusal(
          `memprefix at ${url} answered with status ${answer.status}`,
          "give two valid keys of it: --keys",
        );
      return { usage: readUsage(await answer.json()), ms: 0 };
    };
  const verdict = await compared(as(one), others.map(as)).catch((error: unknown): Verdict => {
    if (error instanceof EngineRefusal) throw error;
    return { kind: "unknown", why: "it could not be reached" };
  });
  if (verdict.kind === "unknown")
    return { part, state: "unknown", says: `${url}: ${verdict.why}`, advice: "start it: memprefix serve" };
  const of = `${verdict.others} of the ${verdict.own} tokens that hit for the first key hit for another`;
  if (verdict.kind === "apart") return { part, state: "ok", says: `${url}: ${of}` };
  const advice =
    "make each tenant a key of its own: memprefix keys create --tenant NAME (or see what is said of the engine)";
  return { part, state: "broken", says: `the keys share one cache: ${of}`, advice };
}
