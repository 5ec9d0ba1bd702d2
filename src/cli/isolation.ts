import { digestOf } from "../core/index.js";
import { parsedJson } from "../core/text/json.js";
import { ENGINES } from "../engines/adapters/engines.js";
import { openUpstream, type Upstream, UpstreamError } from "../engines/upstream/upstream.js";
import { newSecret } from "../service/base/tenant.js";
import { openChatEngine } from "./assemble.js";
import { ask, EngineRefusal, familyBy, openProbes, type Probe, type ProbedEngine } from "./engine-probe.js";
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
  /** memprefix's keys of two tenants; empty: what the running service does with keys is not tried. */
  readonly keys: readonly string[];
}

/** Sends pairs of probes through the upstream, and says which layer lets one tenant's prompt hit another's cache. */
export async function checkIsolation(
  settings: Settings,
  { model, keys }: IsolationOptions,
): Promise<readonly IsolationFinding[]> {
  const opened = openChatEngine(settings);
  if (opened === null)
    return [
      { part: "engine", state: "unknown", says: "none is configured", advice: "name it: MEMPREFIX_UPSTREAM_URL" },
    ];
  const { upstream } = opened;
  try {
    const probed = await openProbes(upstream, familyBy(settings, upstream), model);
    const findings = [await throughUpstream(upstream, probed)];
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

/** Sends one prompt, always for the same tenant. */
type Sender = () => Promise<Pick<Probe, "usage">>;

/** A prompt that nobody sent before, sent for one tenant and for others. */
interface Senders {
  readonly own: Sender;
  readonly others: readonly Sender[];
}

/** Whether prompts of others hit what one's own prompt left in the cache. */
type Verdict =
  /** Tokens: of the own prompt that hit, and the most that hit for others. */
  | { readonly kind: "apart" | "shared"; readonly own: number; readonly others: number }
  | { readonly kind: "unknown"; readonly why: string };

/**
 * Three of the longest common cache blocks (128 tokens, vLLM on CPUs); prompts of the second length are sent only where the first does not hit,
 * for engines that reuse a prompt in longer steps.
 */
const PROMPT_TOKENS = [400, 1_500] as const;

/** A router may send a prompt to a replica that does not have it. */
const MOST_ROUNDS = 4;

/** Compares prompts that nobody sent before. Each of the others must miss what the own one hits. */
async function compared(newSenders: (tokens: number) => Senders): Promise<Verdict> {
  for (const tokens of PROMPT_TOKENS) {
    const { own, others } = newSenders(tokens);
    const hits = await ownHits(own);
    if (hits === "unreported") return { kind: "unknown", why: "its answers have no cached tokens" };
    if (hits === null) continue;
    let most = 0;
    for (const other of others) most = Math.max(most, cachedIn(await other()));
    const isShared = (fresh: number) => most - fresh > (hits.again - fresh) / 2;
    // An engine's own template hits too, once it was cached: a prompt that is new now shows how much of it.
    const areShared = isShared(hits.fresh) && isShared(cachedIn(await newSenders(tokens).own()));
    return { kind: areShared ? "shared" : "apart", own: hits.again, others: most };
  }
  return { kind: "unknown", why: "the same prompt does not hit, not even for its own tenant" };
}

/** Cached tokens of a tenant's prompt at first, and sent again; null: it does not hit. */
async function ownHits(own: Sender): Promise<{ readonly fresh: number; readonly again: number } | "unreported" | null> {
  const { usage } = await own();
  const fresh = usage.cachedTokens ?? 0;
  let isReported = usage.cachedTokens !== null;
  for (let round = 1; round < MOST_ROUNDS; round++) {
    const { cachedTokens, promptTokens } = (await own()).usage;
    isReported ||= cachedTokens !== null;
    // Some versions of vLLM leave a count of 0 out.
    if (!isReported) return "unreported";
    const again = cachedTokens ?? 0;
    if (again - fresh > ((promptTokens ?? 0) - fresh) / 2) return { fresh, again };
  }
  return null;
}

function cachedIn({ usage }: Pick<Probe, "usage">): number {
  return usage.cachedTokens ?? 0;
}

const QUESTION = "Say yes.";

/** Tenants as memprefix would name them to the engine, and a client's own salt. */
async function tenantsApart(probed: ProbedEngine, salt: string | undefined): Promise<Verdict> {
  const [one = "", second = ""] = [newSecret(), newSecret()].map((secret) => digestOf(secret));
  const ownSalt = salt === undefined ? null : { [salt]: digestOf(newSecret()) };
  return compared((tokens) => {
    const { send } = probed.newPrompts(tokens)(QUESTION);
    const others = [() => send(second), ...(ownSalt === null ? [] : [() => send(one, ownSalt)])];
    return { own: () => send(one), others };
  });
}

async function throughUpstream(upstream: Upstream, probed: ProbedEngine): Promise<IsolationFinding> {
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
  const part = await layerOf(probed, salt);
  const says =
    part === "engine"
      ? `the engine gets ${salt} and ignores it: ${of}`
      : `a gateway drops or replaces ${salt}, or the engine does not know it: ${of}`;
  const advice =
    part === "engine"
      ? `use an engine, or a version of it, that keeps caches apart by ${salt}, or one engine for each tenant`
      : `let the gateway at ${upstream.name} forward ${salt} unmodified; the engine's own address as MEMPREFIX_UPSTREAM_URL tests the engine alone`;
  return { part, state: "broken", says, advice };
}

/** An engine that knows the field rejects a salt that is not text. Whoever takes it has dropped the field. */
async function layerOf(probed: ProbedEngine, salt: string): Promise<"gateway" | "engine"> {
  try {
    await probed
      .newPrompts(PROMPT_TOKENS[0])(QUESTION)
      .send(newSecret(), { [salt]: { not: "a salt" } });
    return "gateway";
  } catch (error) {
    if (error instanceof EngineRefusal && (error.status === 400 || error.status === 422)) return "engine";
    throw error;
  }
}

/** Whether the running service gives two keys salts of their own. */
async function throughService(
  settings: Settings,
  { model, family, newPrompts }: ProbedEngine,
  [one = "", ...others]: readonly string[],
): Promise<IsolationFinding> {
  const part = "memprefix";
  const url = addressOf(settings);
  const verdict = await compared((tokens) => {
    const { messages } = newPrompts(tokens)(QUESTION);
    const headers = [["x-memprefix-bypass", "true"]] as const;
    const as =
      (apiKey: string): Sender =>
      async () => {
        const service = openUpstream({ url: `${url}/v1`, apiKey, timeoutMs: 60_000 });
        const answer = await ask(service, { headers, body: { model, messages } });
        return { usage: ENGINES[family].readUsage(parsedJson(answer.text)) };
      };
    return { own: as(one), others: others.map(as) };
  }).catch((error: unknown): Verdict => {
    if (error instanceof EngineRefusal) {
      const says = `memprefix at ${url}: ${error.message}`;
      throw new EngineRefusal(says, "give two valid keys of it: --keys");
    }
    if (!(error instanceof UpstreamError)) throw error;
    return { kind: "unknown", why: "it could not be reached" };
  });
  if (verdict.kind === "unknown")
    return { part, state: "unknown", says: `${url}: ${verdict.why}`, advice: "start it: memprefix serve" };
  const of = `${verdict.others} of the ${verdict.own} tokens that hit for the first key hit for another`;
  if (verdict.kind === "apart") return { part, state: "ok", says: `${url}: ${of}` };
  const advice =
    "make each tenant a key of its own: memprefix keys add --tenant NAME (or see what is said of the engine)";
  return { part, state: "broken", says: `the keys share one cache: ${of}`, advice };
}
