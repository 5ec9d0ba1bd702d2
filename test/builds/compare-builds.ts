/**
 * Compares what two builds compose: `npm run compare-builds -- OLD_DIST NEW_DIST [--requests 1400] [--seed 1] [--shown 2] [--service openai]`.
 * Each serves the same requests from an empty data directory and again after a restart, in front of the same engine and Mem0.
 * Compared are what these are sent, as parsed JSON, statuses, and what `/compose` answers; times, generated ids and durations are masked. Prints
 * the differences by door and field; exits with 1 where there are any.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, type IncomingMessage, request as send } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { parseArgs } from "node:util";
import { isRecord, parsedJson } from "../../src/core/text/json.js";
import { launch, listening } from "../cli/launch.js";
import { agentEngine, type RawRequest } from "../clients/agent-engine.js";
import { WEBHOOK_TOKEN } from "../http/contracts/fuzzed-requests.js";
import { type ComparedRequest, comparedRequests, type Format, requestsOfTheEnd } from "./compared-requests.js";
import { type SentRequest, searchedMem0 } from "./searched-mem0.js";

interface ComparedService {
  /** Its share of the requests. */
  readonly share: number;
  /** The APIs that its requests come through. */
  readonly formats: readonly Format[];
  readonly settings: Readonly<Record<string, string>>;
}

const SERVICES: Readonly<Record<string, ComparedService>> = {
  openai: {
    share: 0.4,
    formats: ["chat", "responses"],
    settings: {
      MEMPREFIX_WEBHOOK_TOKEN: WEBHOOK_TOKEN,
      MEMPREFIX_IDENTITY: "user=header:x-user,conversation=body:metadata.session_id,side_call=prompt:open-webui",
    },
  },
  vllm: {
    share: 0.25,
    formats: ["chat", "responses"],
    settings: {
      MEMPREFIX_ENGINE_FAMILY: "vllm",
      ...{ MEMPREFIX_WRITE_BACK: "on", MEMPREFIX_WARM_UP: "on" },
      ...{ MEMPREFIX_ROUTER: "vllm-router", MEMPREFIX_ENGINE_COST: "gpu", MEMPREFIX_CACHE_SIZE: "20000" },
    },
  },
  anthropic: {
    share: 0.2,
    formats: ["messages"],
    settings: { MEMPREFIX_ENGINE_FAMILY: "anthropic" },
  },
  "no engine": {
    share: 0.15,
    formats: ["chat", "responses", "messages"],
    settings: {
      ...{ MEMPREFIX_SOURCE: "none", MEMPREFIX_POLICY: "carry-over", MEMPREFIX_ENGINE_FAMILY: "llamacpp" },
      ...{ MEMPREFIX_RETENTION: "ephemeral", MEMPREFIX_TOP_K: "5", MEMPREFIX_CACHE_SIZE: "2 slots" },
    },
  },
};
const CLOCK = new URL("request-clock.mjs", import.meta.url).href;
/** For what goes on after an answer, such as what the engine reported. */
const SETTLED_MS = { chat: 30, other: 3 };

/** Headers that HTTP itself needs. */
const OF_HTTP = new Set(["host", "connection", "content-length", "transfer-encoding"]);

/** One answer with everything that reached the servers behind the service, masked: `status`, `body`, `sent`. */
interface Outcome {
  readonly door: string;
  readonly request: string;
  readonly parts: unknown;
}

/** Masks what no two runs have in common in a JSON value; generated ids are numbered as they come. */
function masking(): (value: unknown) => unknown {
  const ids = new Map<string, string>();
  return (value) => {
    const masked = JSON.stringify(value)
      .replace(
        /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{32}|(?<="x-session-id":")[^"]+|(?<=")[\w-]{43}(?=")/g,
        (id) => {
          if (!ids.has(id)) ids.set(id, `<id ${ids.size}>`);
          return ids.get(id) ?? id;
        },
      )
      .replace(/("(?:[a-z_]+_)?(?:ms|seconds)(?:_p\d+|_[a-z]+)?":\s*)(?:\{[^{}]*\}|-?[\d.e+-]+)/g, '$1"<time>"')
      .replace(/127\.0\.0\.1:\d+/g, "<host>");
    return JSON.parse(masked);
  };
}

/** Serves all requests with the build in a folder. */
async function outcomesOf(dist: string): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const [name, { share, formats, settings }] of Object.entries(SERVICES)) {
    if (values.service !== undefined && values.service !== name) continue;
    const count = Math.ceil(Number(values.requests) * share);
    const requests = comparedRequests(Number(values.seed), count, process.env["LOCOMO_DATA"] ?? null, formats);
    const root = mkdtempSync(join(tmpdir(), "memprefix-builds-"));
    const received: SentRequest[] = [];
    let { turn, found } = requests[0] as ComparedRequest;
    const watch = ({ headers, raw, ...request }: RawRequest) => {
      const own = Object.entries(headers).filter(([header]) => !OF_HTTP.has(header));
      received.push({ ...request, headers: Object.fromEntries(own), body: JSON.parse(raw || "{}") as unknown });
    };
    const engine = await agentEngine("all", () => turn, watch);
    const mem0 = await searchedMem0(() => found, watch);
    const environment = {
      ...{ PATH: process.env["PATH"] ?? "", HOME: root, TMPDIR: root },
      ...{ MEMPREFIX_PORT: "0", MEMPREFIX_LOG_LEVEL: "error", MEMPREFIX_DATA_DIR: join(root, "data") },
      ...{ MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: mem0.url },
      ...(name === "no engine" ? {} : { MEMPREFIX_UPSTREAM_URL: engine.url }),
      ...settings,
    };
    const mask = masking();
    for (const [at, all] of [requests, requestsOfTheEnd(requests)].entries()) {
      const clock = { NODE_OPTIONS: `--import=${CLOCK}`, CLOCK_STARTS_AT: String(Date.UTC(2026, at)) };
      const service = launch(["serve"], { ...environment, ...clock }, { main: join(resolve(dist), "cli/main.js") });
      const base = new URL(await listening(service));
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const written: SentRequest[] = [];
      const keep = (door: string, request: string, parts: object) =>
        outcomes.push({ door: `${name}: ${door}`, request, parts: mask(parts) });
      for (const request of all) {
        const { door, method, path, headers, body } = request;
        ({ turn, found } = request);
        const parts = await answerTo(base, request, agent);
        await after(path.includes("/v1/") ? SETTLED_MS.chat : SETTLED_MS.other);
        const shown = `${method} ${path} ${JSON.stringify(headers)} ${String(body).slice(0, 2_000)}`;
        const all = received.splice(0);
        // Answers are written back after they were sent: beside which request, is chance.
        written.push(...all.filter(isWritten));
        keep(door, shown, { ...parts, sent: inOrder(all.filter((one) => !isWritten(one))) });
      }
      agent.destroy();
      service.child.kill("SIGTERM");
      const { code, stderr } = await service.ended;
      if (stderr !== "") console.error(`${dist}, ${name}: ${stderr}`);
      written.push(...received.splice(0));
      keep("process", "SIGTERM", { code, written: inOrder(written) });
    }
    await Promise.all([engine.close(), mem0.close()]);
    rmSync(root, { recursive: true });
  }
  return outcomes;
}

async function answerTo(
  { hostname, port }: URL,
  { door, method, path, headers, body }: ComparedRequest,
  agent: Agent,
): Promise<object> {
  const entity = body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const request = send({ hostname, port, method, path, agent, headers: { ...entity, ...headers } });
  request.end(body ?? undefined);
  try {
    const [response] = (await once(request, "response")) as [IncomingMessage];
    const text = Buffer.concat(await response.toArray()).toString("utf8");
    const isCompared = door.includes("/compose") && response.statusCode === 200;
    return { status: response.statusCode, ...(isCompared ? { body: jsonIn(text) } : {}) };
  } catch (error) {
    return { status: (error as Error).message };
  }
}

const isWritten = ({ method, url }: SentRequest) => method === "POST" && url === "/memories";

/** Requests in an order that does not depend on when they came. */
function inOrder(received: readonly SentRequest[]): readonly SentRequest[] {
  const keyOf = ({ method, url, body }: SentRequest) => `${method} ${url} ${JSON.stringify(body)}`;
  return received.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** The value of JSON, or of lines of it. */
function jsonIn(text: string): unknown {
  return parsedJson(text) ?? text.trim().split("\n").map(parsedJson);
}

/** Where two values differ: paths into them with what is there. */
function differences(old: unknown, now: unknown, path = ""): (readonly [field: string, old: string, now: string])[] {
  const [was = "absent", is = "absent"] = [JSON.stringify(old), JSON.stringify(now)];
  if (was === is) return [];
  if (!isRecord(old) || !isRecord(now) || Array.isArray(old) !== Array.isArray(now))
    return [[path, was.slice(0, 200), is.slice(0, 200)]];
  const names = new Set([...Object.keys(old), ...Object.keys(now)]);
  return [...names].flatMap((name) =>
    differences(old[name], now[name], `${path}${Array.isArray(old) ? "[]" : `.${name}`}`),
  );
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    requests: { type: "string", default: "1400" },
    seed: { type: "string", default: "1" },
    shown: { type: "string", default: "2" },
    service: { type: "string" },
  },
});
const [oldDist, newDist] = positionals;
if (oldDist === undefined || newDist === undefined) {
  console.error("Usage: npm run compare-builds -- OLD_DIST NEW_DIST [--requests 1400] [--seed 1] [--shown 2]");
  process.exit(2);
}
const [old, now] = [await outcomesOf(oldDist), await outcomesOf(newDist)];
const groups = new Map<string, string[]>();
let first = "";
for (const [at, { door, request, parts }] of old.entries())
  for (const [field, from, to] of differences(parts, now[at]?.parts)) {
    const name = `${door} | ${field}`;
    first ||= `The first, of request ${at}, is of ${name}. Others may follow from it.\n`;
    const group = groups.get(name) ?? [];
    groups.set(name, group);
    group.push(`  ${request.slice(0, 300)}\n    - ${from}\n    + ${to}`);
  }
for (const [name, all] of [...groups].sort(([, a], [, b]) => b.length - a.length))
  console.log(`${all.length} × ${name}\n${all.slice(0, Number(values.shown)).join("\n")}`);
console.log(`${first}${old.length} answers compared, differences in ${groups.size} fields.`);
process.exitCode = groups.size === 0 ? 0 : 1;
