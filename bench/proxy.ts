/**
 * `npm run bench:proxy`: what the proxy adds to a direct call, in milliseconds, to the first byte and to the whole answer; and what a hop
 * adds that does nothing (`bench/bare-hop.ts`), below which no proxy comes. Engine, built service, hop and client are processes of their
 * own on the loopback; the engine streams at an engine's pace (`bench/paced-engine.ts`). Every stream takes the ways in turn, in an order that changes from round to round, so that whatever else the machine does meets all of them;
 * each stream is a user of its own. No memory search: without memories, and with 20 recorded ones in the request (the direct call has
 * them in its prompt). `in step`: all streams ask at the same instant, which makes each wait for those before it.
 *
 * `messages`: the same request in Anthropic's form, converted both ways.
 *
 * The added time is the difference between the two ways' percentiles.
 * `ROUNDS=n` of each way in each stream, behind one that opens connections and users. Before all, `WARM_UP=n` calls of each way, so that
 * a service is measured that has been running for a while: one that has just started has its code still to compile. `CPU_PROF=folder` writes the service's profile there. Takes `--data FOLDER` (`recorded-data.ts`).
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { listeningChild } from "./child-process.js";
import { neededData } from "./recorded-data.js";
import { seeded } from "./seeded.js";

const WAYS = ["direct", "hop", "proxied", "messages", "direct with memories", "proxied with memories"] as const;
type Way = (typeof WAYS)[number];
/** How a way is named in the table; the proxy's own is not. */
const NAMED: Partial<Record<Way, string>> = { hop: ", bare hop", messages: ", messages" };
const K = 20;
const INSTRUCTION = "You are a helpful assistant. Answer the question from what you remember about the user.";
const data = neededData();
const trace = readRecordedTrace(data, "conv-26");
const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

interface Timing {
  /** Milliseconds from sending the request. */
  readonly first: number;
  readonly total: number;
}

const agent = new Agent({ keepAlive: true });
function call(base: string, path: string, end: string, body: object, user: string): Promise<Timing> {
  const sent = JSON.stringify(body);
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(sent),
    "x-memstem-user": user,
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
        if (response.statusCode !== 200 || first === null || !last.endsWith(end))
          return reject(new Error(`${response.statusCode}, and its end is ${JSON.stringify(last)}`));
        return resolve({ first, total: performance.now() - start });
      });
    });
    outgoing.on("error", reject);
    outgoing.end(sent);
  });
}

function bodyOf(way: Way, round: number, tokens: number): object {
  const asked = trace.questions[round % trace.questions.length];
  const question = asked?.question ?? "";
  const memories = (asked?.retrieved ?? [])
    .slice(0, K)
    .map((at) => ({ id: String(at), memory: trace.memories[at]?.memory ?? "" }));
  const withMemories = way.endsWith("memories");
  const inline =
    withMemories && way.startsWith("direct") ? `${memories.map(({ memory }) => `- ${memory}\n`).join("")}\n` : "";
  if (way === "messages") {
    const messages = [{ role: "user", content: question }];
    return { model: "stub", stream: true, max_tokens: tokens, system: INSTRUCTION, messages };
  }
  return {
    model: "stub",
    stream: true,
    max_tokens: tokens,
    messages: [
      { role: "system", content: INSTRUCTION },
      { role: "user", content: `${inline}${question}` },
    ],
    ...(way === "proxied with memories" ? { memstem: { memories } } : {}),
  };
}

const quantile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;

const dataDir = mkdtempSync(join(tmpdir(), "memstem-bench-"));
const engine = await listeningChild(["--import", "tsx", path("paced-engine.ts")]);
const hop = await listeningChild(["--import", "tsx", path("bare-hop.ts")], { UPSTREAM: engine.address });
const profile = process.env["CPU_PROF"];
const service = await listeningChild(
  [...(profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profile}`]), path("../dist/cli/main.js"), "serve"],
  {
    MEMSTEM_PORT: "0",
    MEMSTEM_SOURCE: "none",
    MEMSTEM_LOG_LEVEL: process.env["LOG_LEVEL"] ?? "info",
    MEMSTEM_DATA_DIR: dataDir,
    MEMSTEM_UPSTREAM_URL: engine.address,
  },
);
const random = seeded(11);
function baseOf(way: Way): string {
  if (way.startsWith("direct")) return engine.address;
  return way === "hop" ? `${hop.address}/v1` : `${service.address}/v1`;
}

/** The path of a way's calls, and the end of its streams. */
function pathOf(way: Way): [path: string, end: string] {
  return way === "messages"
    ? ["messages", 'data: {"type":"message_stop"}\n\n']
    : ["chat/completions", "data: [DONE]\n\n"];
}

async function measure(streams: number, rounds: number, tokens: number, inStep: boolean): Promise<void> {
  const seen = new Map<Way, Timing[]>(WAYS.map((way) => [way, []]));
  const user = (stream: number) => `user-${streams}-${inStep ? "step" : "own"}-${stream}`;
  const once = async (stream: number, round: number, way: Way) => {
    const timing = await call(baseOf(way), ...pathOf(way), bodyOf(way, round, tokens), user(stream));
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
  for (const memories of ["", " with memories"] as const) {
    const sorted = (way: Way, field: keyof Timing) =>
      (seen.get(way) ?? []).map((timing) => timing[field]).toSorted((a, b) => a - b);
    const compared: [Way, keyof Timing][] = [
      ...(memories === "" ? [["hop", "first"] satisfies [Way, keyof Timing]] : []),
      ...(memories === ""
        ? ([
            ["messages", "first"],
            ["messages", "total"],
          ] satisfies [Way, keyof Timing][])
        : []),
      [`proxied${memories}`, "first"],
      [`proxied${memories}`, "total"],
    ];
    for (const [way, field] of compared) {
      const [direct, proxied] = [sorted(`direct${memories}`, field), sorted(way, field)];
      const cells = [0.5, 0.99].flatMap((share) => {
        const [a, b] = [quantile(direct, share), quantile(proxied, share)];
        return [a.toFixed(1), b.toFixed(1), (b - a).toFixed(1)];
      });
      const what = `${field === "first" ? "first byte" : "whole answer"}${NAMED[way] ?? ""}`;
      console.log(`| ${name} | ${memories === "" ? "none" : K} | ${what} | ${direct.length} | ${cells.join(" | ")} |`);
    }
  }
}

const warmUp = Number(process.env["WARM_UP"] ?? 500);
const SIDE_BY_SIDE = 8;
await Promise.all(
  Array.from({ length: SIDE_BY_SIDE }, async (_, stream) => {
    for (let round = stream; round < warmUp; round += SIDE_BY_SIDE)
      for (const way of WAYS) await call(baseOf(way), ...pathOf(way), bodyOf(way, round, 1), `user-warm-${stream}`);
  }),
);
console.log(
  "| streams | memories | to | calls | direct p50, ms | proxied | added | direct p99 | proxied | added |\n| --- | --: | --- | --: | --: | --: | --: | --: | --: | --: |",
);
const rounds = Number(process.env["ROUNDS"] ?? 0);
await measure(1, rounds || 100, 5, false);
await measure(32, Math.min(rounds || 12, 12), 50, false);
await measure(32, Math.min(rounds || 8, 8), 10, true);
console.log(`\nload average ${loadavg()[0]?.toFixed(1)}`);
agent.destroy();
await service.stop();
await hop.stop();
await engine.stop();
rmSync(dataDir, { recursive: true });
