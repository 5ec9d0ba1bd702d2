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
  readonly parts: Readonly<Record<string, string>>;
}

/** Masks what no two runs have in common; generated ids are numbered as they come. */
function masking(): (text: string) => string {
  const ids = new Map<string, string>();
  return (text) =>
    text
      .replace(
        /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{32}|(?<="x-session-id":")[^"]+|(?<=")[\w-]{43}(?=")/g,
        (id) => {
          if (!ids.has(id)) ids.set(id, `<id ${ids.size}>`);
          return ids.get(id) ?? id;
        },
      )
      .replace(/("(?:[a-z_]+_)?(?:ms|seconds)(?:_p\d+|_[a-z]+)?":\s*)(?:\{[^{}]*\}|-?[\d.e+-]+)/g, "$1<time>")
      .replace(/127\.0\.0\.1:\d+/g, "<host>");
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
      const keep = (door: string, request: string, parts: Readonly<Record<string, string>>) => {
        const masked = Object.entries(parts).map(([part, text]) => [part, mask(text)]);
        outcomes.push({ door: `${name}: ${door}`, request, parts: Object.fromEntries(masked) as Outcome["parts"] });
      };
      for (const request of all) {
        const { door, method, path, headers, body } = request;
        ({ turn, found } = request);
        const parts = await answerTo(base, request, agent);
        await after(path.includes("/v1/") ? SETTLED_MS.chat : SETTLED_MS.other);
        const shown = `${method} ${path} ${JSON.stringify(headers)} ${String(body).slice(0, 2_000)}`;
        const [sent = [], writtenNow = []] = partition(received.splice(0));
        written.push(...writtenNow);
        keep(door, shown, { ...parts, sent: linesOf(sent) });
      }
      agent.destroy();
      service.child.kill("SIGTERM");
      const { code, stderr } = await service.ended;
      if (stderr !== "") console.error(`${dist}, ${name}: ${stderr}`);
      // Answers are written back after they were sent: beside which request, is chance.
      written.push(...received.splice(0));
      keep("process", "SIGTERM", { code: String(code), written: linesOf(written) });
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
): Promise<Readonly<Record<string, string>>> {
  const entity = body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const request = send({ hostname, port, method, path, agent, headers: { ...entity, ...headers } });
  request.end(body ?? undefined);
  try {
    const [response] = (await once(request, "response")) as [IncomingMessage];
    const text = Buffer.concat(await response.toArray()).toString("utf8");
    const isCompared = door.includes("/compose") && response.statusCode === 200;
    return { status: String(response.statusCode), ...(isCompared ? { body: text } : {}) };
  } catch (error) {
    return { status: `none: ${(error as Error).message}` };
  }
}

/** What reached the servers with a request, and what may have come of an earlier one. */
function partition(received: readonly SentRequest[]): SentRequest[][] {
  const isWritten = ({ method, url }: SentRequest) => method === "POST" && url === "/memories";
  return [received.filter((one) => !isWritten(one)), received.filter(isWritten)];
}

/** Requests as lines, whatever order they and their fields came in. */
function linesOf(received: readonly SentRequest[]): string {
  const lines = received.map((one) => JSON.stringify(sorted(one)));
  return lines.sort().join("\n");
}

/** With the names of objects in alphabetical order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, sorted(field)]));
}

/** Where two texts differ: paths into their JSON with the two values, else the first place. */
function differences(old: string, now: string): readonly (readonly [field: string, old: string, now: string])[] {
  const [was, is] = [parsed(old), parsed(now)];
  const found = was === undefined || is === undefined ? [] : jsonDifferences(was, is, "");
  // Of JSON that says the same, the order of names may differ.
  if (found.length > 0 || (was !== undefined && is !== undefined)) return found;
  let at = 0;
  while (old[at] === now[at]) at++;
  const around = (text: string) => text.slice(Math.max(0, at - 80), at + 80);
  return [[" text", around(old), around(now)]];
}

function jsonDifferences(old: unknown, now: unknown, path: string): (readonly [string, string, string])[] {
  const [was = "absent", is = "absent"] = [JSON.stringify(old), JSON.stringify(now)];
  if (was === is) return [];
  const areHolders = [old, now].every((value) => typeof value === "object" && value !== null);
  if (!areHolders || Array.isArray(old) !== Array.isArray(now)) return [[path, was.slice(0, 200), is.slice(0, 200)]];
  const names = new Set([...Object.keys(old as object), ...Object.keys(now as object)]);
  return [...names].flatMap((name) => {
    const [one, other] = [old, now].map((value) => (value as Readonly<Record<string, unknown>>)[name]);
    return jsonDifferences(one, other, `${path}${Array.isArray(old) ? "[]" : `.${name}`}`);
  });
}

/** JSON, or lines and events of it; undefined for another text. */
function parsed(text: string): unknown {
  const json = (part: string): unknown => JSON.parse(part.replace(/(?<!")<time>(?!")/g, '"$&"'));
  try {
    return json(text);
  } catch {
    try {
      const lines = text.split("\n").filter((line) => line !== "");
      return lines.map((line) => (/^(?:data: )?[{[]/.test(line) ? json(line.replace(/^data: /, "")) : line));
    } catch {
      return undefined;
    }
  }
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
for (const [at, { door, request, parts }] of old.entries()) {
  const others = now[at]?.parts ?? {};
  for (const part of new Set([...Object.keys(parts), ...Object.keys(others)])) {
    const [was = "(absent)", is = "(absent)"] = [parts[part], others[part]];
    for (const [field, from, to] of was === is ? [] : differences(was, is)) {
      first ||= `The first, of request ${at}, is of ${door} | ${part}${field}. Others may follow from it.\n`;
      const group = groups.get(`${door} | ${part}${field}`) ?? [];
      groups.set(`${door} | ${part}${field}`, group);
      group.push(`  ${request.slice(0, 300)}\n    - ${from}\n    + ${to}`);
    }
  }
}
for (const [name, all] of [...groups].sort(([, a], [, b]) => b.length - a.length))
  console.log(`${all.length} × ${name}\n${all.slice(0, Number(values.shown)).join("\n")}`);
console.log(`${first}${old.length} answers compared, differences in ${groups.size} fields.`);
process.exitCode = groups.size === 0 ? 0 : 1;
