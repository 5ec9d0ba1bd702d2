/**
 * `npm run bench -- proxy`: what the proxy adds to a direct call, in milliseconds, to the first byte and to the whole answer, by each of its
 * APIs; and what a hop adds that does nothing (`bench/bare-hop.ts`), below which no proxy comes. Engine, built services, hop and client are
 * processes of their own on the loopback; the engine streams at an engine's pace (`bench/paced-engine.ts`), by every API alike, so that one
 * direct call stands for all. Every stream takes the ways in turn, in an order that changes from round to round, so that whatever else the
 * machine does meets all of them; each stream is a user of its own. No memory search: without memories, and with 20 recorded ones in the
 * request (the direct call has them in its prompt). `in step`: all streams ask at the same instant, which makes each wait for those before it.
 *
 * `OLD=folder`: the built service of another version (its `dist`), beside this one, as ways of its own (`old chats`).
 *
 * The added time is the difference between the two ways' percentiles. Ends with 1 where an API adds over a millisecond more than chats
 * do to the first byte, at the median, streams not in step; or more than that of the old version.
 * `ROUNDS=n` of each way in each stream, behind one that opens connections and users. Before all, `WARM_UP=n` calls of each way, so that
 * a service is measured that has been running for a while: one that has just started has its code still to compile. Takes `--data FOLDER` (`recorded-data.ts`).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { listeningChild } from "./child-process.js";
import { neededTraces } from "./recorded-data.js";
import { seeded } from "./seeded.js";
import { median, quantile } from "./statistics.js";
import { printHead, printRow } from "./table.js";

const APIS = ["chats", "responses", "messages"] as const;
const OLD = process.env["OLD"] ?? null;
type ApiWay = (typeof APIS)[number];
type Base = "direct" | "hop" | ApiWay | `old ${ApiWay}`;
type Way = Base | `${Base} with memories`;
const OLD_WAYS: readonly Base[] = OLD === null ? [] : APIS.map((api): Base => `old ${api}`);
const BASES: readonly Base[] = ["direct", "hop", ...APIS, ...OLD_WAYS];
/** What a way is compared with. */
const comparedWith = (base: Base): readonly Base[] => {
  if (base !== "chats" && base !== "responses" && base !== "messages") return [];
  return [...(base === "chats" ? [] : ["chats" as const]), ...(OLD === null ? [] : [`old ${base}` as const])];
};
const WAYS: readonly Way[] = [
  ...BASES,
  ...BASES.filter((base) => base !== "hop").map((base): Way => `${base} with memories`),
];
/** Most milliseconds that an API may add to what chats add. */
const MOST_MORE_MS = 1;
const K = 20;
const INSTRUCTION = "You are a helpful assistant. Answer the question from what you remember about the user.";
const [trace = { memories: [], questions: [] }] = neededTraces();
const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

interface Timing {
  /** Milliseconds from sending the request. */
  readonly first: number;
  readonly total: number;
}

const agent = new Agent({ keepAlive: true });
function call(base: string, path: string, end: RegExp, body: object, user: string): Promise<Timing> {
  const sent = JSON.stringify(body);
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(sent),
    "x-memprefix-user": user,
  };
  return new Promise((resolve, reject) => {
    const start = performance.now();
    let first: number | null = null;
    const outgoing = request(`${base}/${path}`, { method: "POST", headers, agent }, (response) => {
      let last = "";
      response.on("data", (data: Buffer) => {
        first ??= performance.now() - start;
        last = (last + data.toString("latin1")).slice(-48);
      });
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode !== 200 || first === null || !end.test(last))
          return reject(new Error(`${response.statusCode}, and its end is ${JSON.stringify(last)}`));
        return resolve({ first, total: performance.now() - start });
      });
    });
    outgoing.on("error", reject);
    outgoing.end(sent);
  });
}

function baseOf(way: Way): Base {
  return way.replace(" with memories", "") as Base;
}

function bodyOf(way: Way, round: number, tokens: number): object {
  const asked = trace.questions[round % trace.questions.length];
  const question = asked?.question ?? "";
  const memories = (asked?.retrieved ?? [])
    .slice(0, K)
    .map((at) => ({ id: String(at), memory: trace.memories[at]?.memory ?? "" }));
  const isRecalling = way.endsWith("with memories");
  const base = baseOf(way);
  const inline = isRecalling && base === "direct" ? `${memories.map(({ memory }) => `- ${memory}\n`).join("")}\n` : "";
  const common = {
    model: "stub",
    stream: true,
    ...(isRecalling && base !== "direct" ? { memprefix: { memories } } : {}),
  };
  const content = `${inline}${question}`;
  if (base.endsWith("messages")) {
    return { ...common, max_tokens: tokens, system: INSTRUCTION, messages: [{ role: "user", content }] };
  }
  if (base.endsWith("responses")) {
    return { ...common, max_output_tokens: tokens, instructions: INSTRUCTION, input: content, store: false };
  }
  const messages = [
    { role: "system", content: INSTRUCTION },
    { role: "user", content },
  ];
  return { ...common, max_tokens: tokens, messages };
}

const dataDir = mkdtempSync(join(tmpdir(), "memprefix-bench-"));
const engine = await listeningChild(["--import", "tsx", path("paced-engine.ts")]);
const hop = await listeningChild(["--import", "tsx", path("bare-hop.ts")], { UPSTREAM: engine.address });
/** Started one after the other: each has a database of its own. */
async function startService(name: string, dist: string) {
  const all = {
    PORT: "0",
    SOURCE: "none",
    DATA_DIR: join(dataDir, name),
    UPSTREAM_URL: engine.address,
  };
  const environment = Object.fromEntries(Object.entries(all).map(([of, value]) => [`MEMPREFIX_${of}`, value]));
  return listeningChild([join(resolve(dist), "cli/main.js"), "serve"], environment);
}
const service = await startService("new", path("../dist"));
const old = OLD === null ? null : await startService("old", OLD);
const random = seeded(11);
/** Where each way asks. */
const ADDRESSES: Readonly<Record<Base, string>> = {
  direct: engine.address,
  hop: `${hop.address}/v1`,
  chats: `${service.address}/v1`,
  responses: `${service.address}/v1`,
  messages: `${service.address}/v1`,
  "old chats": `${old?.address}/v1`,
  "old responses": `${old?.address}/v1`,
  "old messages": `${old?.address}/v1`,
};

/** The path of a way's calls, and what its streams end with. */
function pathOf(way: Way): [path: string, end: RegExp] {
  const base = baseOf(way);
  if (base.endsWith("messages")) return ["messages", /data: \{"type":"message_stop"\}\n\n$/];
  if (base.endsWith("responses")) return ["responses", /\}\n\n$/];
  return ["chat/completions", /data: \[DONE\]\n\n$/];
}

async function measure(streams: number, rounds: number, tokens: number, inStep: boolean): Promise<void> {
  const seen = new Map<Way, Timing[]>(WAYS.map((way) => [way, []]));
  const user = (stream: number) => `user-${streams}-${inStep ? "step" : "own"}-${stream}`;
  const once = async (stream: number, round: number, way: Way) => {
    const timing = await call(ADDRESSES[baseOf(way)], ...pathOf(way), bodyOf(way, round, tokens), user(stream));
    // The first round opens connections and users.
    if (round > 0) seen.get(way)?.push(timing);
  };
  const orders = Array.from({ length: rounds + 1 }, () => WAYS.toSorted(() => random() - 0.5));
  const all = Array.from({ length: streams }, (_, stream) => stream);
  if (inStep) {
    for (const [round, order] of orders.entries())
      for (const way of order) await Promise.all(all.map((stream) => once(stream, round, way)));
  } else {
    await Promise.all(
      all.map(async (stream) => {
        // Streams begin within one answer's length of each other, and each has ways of its own in turn.
        await new Promise((resolve) => setTimeout(resolve, random() * (50 + 20 * tokens)));
        for (const [round, order] of orders.entries())
          for (const at of order.keys()) {
            await once(stream, round, order[(at + stream) % order.length] ?? "direct");
            // Asking again at once would keep them in step with the engine's timer.
            await new Promise((resolve) => setTimeout(resolve, random() * 40));
          }
      }),
    );
  }
  const name = `${streams}${inStep ? ", in step" : ""}`;
  const timesOf = (way: Way, field: keyof Timing) => (seen.get(way) ?? []).map((timing) => timing[field]);
  for (const way of WAYS.filter((one) => baseOf(one) !== "direct")) {
    const isRecalling = way.endsWith("with memories");
    const compared: Way = isRecalling ? "direct with memories" : "direct";
    for (const field of way === "hop" ? (["first"] as const) : (["first", "total"] as const)) {
      const [direct, proxied] = [timesOf(compared, field), timesOf(way, field)];
      const cells = [0.5, 0.99].flatMap((share) => {
        const [a, b] = [quantile(direct, share), quantile(proxied, share)];
        return [a.toFixed(1), b.toFixed(1), (b - a).toFixed(1)];
      });
      const to = field === "first" ? "first byte" : "whole answer";
      const what = [name, isRecalling ? K : "none", baseOf(way), to, direct.length];
      printRow([...what, ...cells]);
    }
  }
  if (inStep) return;
  for (const way of WAYS)
    for (const base of comparedWith(baseOf(way))) {
      const compared: Way = way.endsWith("with memories") ? `${base} with memories` : base;
      const more = median(timesOf(way, "first")) - median(timesOf(compared, "first"));
      if (more <= MOST_MORE_MS) continue;
      console.log(`${way}, ${name} streams: ${more.toFixed(1)} ms more than ${compared} to the first byte`);
      process.exitCode = 1;
    }
}

const warmUp = Number(process.env["WARM_UP"] ?? 500);
const SIDE_BY_SIDE = 8;
await Promise.all(
  Array.from({ length: SIDE_BY_SIDE }, async (_, stream) => {
    for (let round = stream; round < warmUp; round += SIDE_BY_SIDE)
      for (const way of WAYS)
        await call(ADDRESSES[baseOf(way)], ...pathOf(way), bodyOf(way, round, 1), `user-warm-${stream}`);
  }),
);
const TITLES = ["streams", "memories", "by", "to", "calls", "direct p50, ms", "proxied", "added"];
printHead([...TITLES, "direct p99", "proxied", "added"]);
const rounds = Number(process.env["ROUNDS"] ?? 0);
await measure(1, rounds || 100, 5, false);
await measure(32, Math.min(rounds || 12, 12), 50, false);
await measure(32, Math.min(rounds || 8, 8), 10, true);
console.log(`\nload average ${loadavg()[0]?.toFixed(1)}`);
agent.destroy();
for (const one of [service, old]) await one?.stop();
await hop.stop();
await engine.stop();
rmSync(dataDir, { recursive: true });
