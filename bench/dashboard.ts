/**
 * `npm run bench:dashboard`: a usage log of a month with `PROMPTS` prompts of `USERS` users, and what each view of `GET /usage/…` takes on
 * it, over HTTP; then composes with nothing recorded, with no dashboard, with the page on requests (its events, with rows), with the page on
 * its first view (counts, and the figures every three seconds), and with every view asked for every five seconds besides, in turns of
 * `SECONDS` on `CONNECTIONS`, `TURNS` of each. Wall time shows what the machine does besides; CPU is the service's, its threads included.
 * Each turn is compared with the turn without a dashboard in its round: what slows a whole round cancels.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DEFAULT_USAGE_BOUNDS, type UsageEntry } from "../src/store/api/usage-log.js";
import { SqliteUsageLog } from "../src/store/usage/sqlite-usage-log.js";
import { openUsageDatabase } from "../src/store/usage/usage-database.js";
import { type ListeningChild, listeningChild } from "./child-process.js";
import { dashboardRows } from "./dashboard-rows.js";
import { LoadConnection } from "./load-client.js";
import { median } from "./median.js";

const MAIN = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const number = (name: string, standard: number) => Number(process.env[name] ?? standard);
const prompts = number("PROMPTS", 1_000_000);
const users = number("USERS", 20_000);
const seconds = number("SECONDS", 8);
const turns = number("TURNS", 5);
const connections = number("CONNECTIONS", 8);
const BATCH = 2_000;
const ASKED = 40;

const directory = mkdtempSync(join(tmpdir(), "memstem-dashboard-"));
const file = join(directory, "usage.db");
const now = Date.now();

function fill(): void {
  const sqlite = openUsageDatabase(file);
  // A month at once, not a second at a time.
  sqlite.pragma("synchronous = OFF");
  sqlite.pragma("cache_size = -512000");
  const log = new SqliteUsageLog(sqlite, { ...DEFAULT_USAGE_BOUNDS, prompts: prompts + 1 });
  const started = performance.now();
  let batch: UsageEntry[] = [];
  for (const entry of dashboardRows(prompts, users, now)) {
    batch.push(entry);
    if (batch.length < BATCH) continue;
    log.record(batch, now);
    batch = [];
  }
  log.record(batch, now);
  log.close();
  const each = (performance.now() - started) / prompts;
  const size = statSync(file).size / 1e6;
  console.log(
    `${prompts} prompts of ${users} users: ${(each * 1_000).toFixed(0)} µs each to write, ${size.toFixed(0)} MB`,
  );
}

const start = (more: Readonly<Record<string, string>> = {}): Promise<ListeningChild> =>
  listeningChild(["--max-semi-space-size=64", MAIN, "serve"], {
    MEMSTEM_PORT: "0",
    MEMSTEM_SOURCE: "none",
    MEMSTEM_LOG_LEVEL: "silent",
    MEMSTEM_COST: "hosted-writes",
    MEMSTEM_DATA_DIR: directory,
    ...more,
  });

const quantile = (values: readonly number[], q: number) =>
  values.toSorted((a, b) => a - b)[Math.ceil(q * values.length) - 1] ?? Number.NaN;

const VIEWS: readonly (readonly [name: string, path: (n: number) => string])[] = [
  ["summary, hour", () => "/usage/summary?window=hour"],
  ["summary, day", () => "/usage/summary?window=day"],
  ["summary, month", () => "/usage/summary?window=month"],
  ["summary, month, a model", () => "/usage/summary?window=month&model=opus"],
  ["misses, month", () => "/usage/misses?window=month"],
  ["requests", () => "/usage/requests"],
  ["requests, far back", (n) => `/usage/requests?cursor=${(5_000 + n * 10_000).toString(36)}`],
  ["requests of a user", (n) => `/usage/requests?user_id=user-${n}`],
  ["requests by cause", () => "/usage/requests?cause=evicted"],
  ["requests by cause and model", () => "/usage/requests?cause=rewritten_history&model=qwen"],
  ["requests by model", () => "/usage/requests?model=qwen"],
  ["requests of a user by a rare cause", (n) => `/usage/requests?user_id=user-${n}&cause=in_flight`],
  ["users, most missed", () => "/usage/users"],
  ["users, lowest share", () => "/usage/users?order=cached_share"],
  ["conversations, most missed", () => "/usage/conversations"],
  ["conversations of a user", (n) => `/usage/conversations?user_id=user-${n}`],
  ["a conversation", (n) => `/usage/conversation?user_id=user-${n}&conversation_id=c-0`],
];

async function measureViews(address: string): Promise<void> {
  console.log("| view | p50, ms | p95, ms | most, ms |");
  console.log("| --- | --: | --: | --: |");
  for (const [name, path] of VIEWS) {
    const times: number[] = [];
    for (let n = 0; n < ASKED; n++) {
      const started = performance.now();
      const answer = await fetch(address + path(n));
      await answer.arrayBuffer();
      if (answer.status !== 200) throw new Error(`${path(n)} was answered ${answer.status}`);
      times.push(performance.now() - started);
    }
    const [p50, p95, most] = [0.5, 0.95, 1].map((q) => quantile(times, q).toFixed(1));
    console.log(`| ${name} | ${p50} | ${p95} | ${most} |`);
  }
}

/** What is open beside the composes: the events that it follows, and what it asks for again and again. */
interface Open {
  readonly events?: string;
  readonly asks?: readonly string[];
  readonly everyMs?: number;
}
const NO_DASHBOARD = "no dashboard";
const MODES: Readonly<Record<string, Open>> = {
  "nothing recorded": {},
  [NO_DASHBOARD]: {},
  "page on requests": { events: "/usage/events?limit=50" },
  "page on its first view": {
    events: "/usage/events?limit=0",
    asks: ["/usage/summary?window=hour", "/usage/alerts"],
    everyMs: 3_000,
  },
  "and every view": {
    events: "/usage/events?limit=50",
    asks: VIEWS.slice(0, 13).map(([, path]) => path(1)),
    everyMs: 5_000,
  },
};

/** Opens it; the function returned closes it. */
function openDashboard(address: string, { events, asks = [], everyMs = 0 }: Open): () => Promise<void> {
  const closing = new AbortController();
  const follow = async () => {
    if (events === undefined) return;
    const { body } = await fetch(address + events, { signal: closing.signal });
    for await (const _part of body ?? []);
  };
  const poll = async () => {
    while (asks.length > 0 && !closing.signal.aborted) {
      for (const path of asks) {
        const answer = await fetch(address + path, { signal: closing.signal });
        await answer.arrayBuffer();
      }
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  };
  const open = [follow(), poll()];
  return async () => {
    closing.abort();
    await Promise.allSettled(open);
  };
}

let asked = 0;
function composeBody(): Buffer {
  const n = asked++;
  const memories = Array.from({ length: 20 }, (_, at) => ({
    id: `m-${(n * 7 + at) % 60}`,
    memory: `Fact ${(n * 7 + at) % 60} of somebody who likes to travel, to eat well, and to talk about both at length.`,
  }));
  return Buffer.from(JSON.stringify({ user_id: `load-${n % 500}`, query: `What about ${n}?`, memories }));
}

/** Composes per second, and the service's CPU milliseconds for each. */
interface Measured {
  readonly rate: number;
  readonly cpuMs: number;
}

/** Milliseconds after which what was composed last is recorded, too. */
const RECORDED_MS = 1_400;

/** Composes for a while. What recording them took is theirs, not the next turn's. */
async function compose({ address, child }: ListeningChild): Promise<Measured> {
  const until = performance.now() + seconds * 1_000;
  const cpu = cpuOf(child.pid ?? 0);
  let done = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const connection = new LoadConnection(Number(new URL(address).port), "/compose");
      while (performance.now() < until) {
        const { status } = await connection.send(composeBody());
        if (status !== 200) throw new Error(`answered ${status}`);
        done++;
      }
      connection.close();
    }),
  );
  const rate = done / ((performance.now() - started) / 1_000);
  await new Promise((resolve) => setTimeout(resolve, RECORDED_MS));
  return { rate, cpuMs: (cpuOf(child.pid ?? 0) - cpu) / done };
}

function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

try {
  fill();
  const service = await start();
  await measureViews(service.address);
  const offDirectory = join(directory, "off");
  const off = await start({ MEMSTEM_USAGE_PROMPTS: "0", MEMSTEM_DATA_DIR: offDirectory });
  const names = Object.keys(MODES);
  const results = new Map<string, Measured[]>(names.map((name) => [name, []]));
  await compose(service);
  await compose(off);
  for (let turn = 0; turn < turns; turn++) {
    for (const name of turn % 2 === 0 ? names : names.toReversed()) {
      const close = openDashboard(service.address, MODES[name] ?? {});
      results.get(name)?.push(await compose(name === "nothing recorded" ? off : service));
      await close();
    }
  }
  console.log(
    `| composes, ${turns} × ${seconds} s each | per s, median | CPU ms each, median | per s, of none | CPU, of none |`,
  );
  console.log("| --- | --: | --: | --: | --: |");
  const without = results.get(NO_DASHBOARD) ?? [];
  for (const [name, all] of results) {
    const of = (figure: keyof Measured) => median(all.map((one) => one[figure]));
    const ratio = (figure: keyof Measured) =>
      median(all.map((one, at) => one[figure] / (without[at]?.[figure] ?? Number.NaN))).toFixed(3);
    console.log(
      `| ${name} | ${of("rate").toFixed(0)} | ${of("cpuMs").toFixed(3)} | ${ratio("rate")} | ${ratio("cpuMs")} |`,
    );
  }
  console.log(`usage.db ${existsSync(file) ? (statSync(file).size / 1e6).toFixed(0) : 0} MB`);
  await Promise.all([service.stop(), off.stop()]);
} finally {
  rmSync(directory, { recursive: true });
}
