/**
 * `npm run bench -- path`: how much of memprefix one request passes: the files, functions and lines of the built service that run in its main
 * thread, by V8's precise coverage, from the request's first byte to the end of its answer and of what is learned from it. Two requests, each
 * the third turn of a conversation with 20 memories: `POST /compose`, and a streamed chat to an engine of this program's.
 *
 * A line counts where code on it ran: none of comments, types and imports. `FILES=1` also prints each file, with its functions and lines.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { Profiler } from "node:inspector";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { listeningChild } from "./child-process.js";
import { printHead, printRow } from "./table.js";

/** The command line of the build that is measured. */
const MAIN = process.env["MAIN"] ?? fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const BUILT = new URL("../", pathToFileURL(MAIN)).href;
const K = 20;
const TURNS = 3;
/** Longer than what is recorded waits to be written. */
const SETTLED_MS = 1_500;
/** In which a chat's report is applied. */
const LEARNED_MS = 100;

/** Runs in the service: writes what ran since the last signal. */
const PRELOAD = `
import { Session } from "node:inspector";
import { renameSync, writeFileSync } from "node:fs";
const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
process.on("SIGUSR2", () => session.post("Profiler.takePreciseCoverage", (error, taken) => {
  if (error) throw error;
  writeFileSync(process.env.COVERAGE_FILE + ".part", JSON.stringify(taken.result));
  renameSync(process.env.COVERAGE_FILE + ".part", process.env.COVERAGE_FILE);
}));
`;

/** What ran of one file. */
interface Passed {
  readonly file: string;
  readonly functions: number;
  readonly lines: number;
}

function passedIn({ url, functions }: Profiler.ScriptCoverage): Passed {
  const source = readFileSync(fileURLToPath(url), "utf8");
  const ran = new Uint8Array(source.length);
  // Outer functions and blocks come before those within.
  for (const { ranges } of functions)
    for (const { startOffset, endOffset, count } of ranges) ran.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  let at = 0;
  let lines = 0;
  for (const line of source.split("\n")) {
    const isCode = /\w/.test(line) && !/^\s*(?:\/\/|\/?\*|import\b)/.test(line);
    if (isCode && ran.subarray(at + line.search(/\S/), at + line.length).includes(1)) lines++;
    at += line.length + 1;
  }
  const named = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0);
  return { file: url.slice(BUILT.length), functions: named.length, lines };
}

const directory = mkdtempSync(join(tmpdir(), "memprefix-path-"));
const coverage = join(directory, "coverage.json");
const engine = createServer(async (incoming, answer) => {
  await incoming.toArray();
  if (incoming.method === "GET") return answer.writeHead(404).end();
  const chunk = (fields: object) =>
    `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", ...fields })}\n\n`;
  const said = (delta: object, finish_reason: string | null) =>
    chunk({ choices: [{ index: 0, delta, finish_reason }] });
  const usage = { prompt_tokens: 900, completion_tokens: 2, prompt_tokens_details: { cached_tokens: 128 } };
  answer.writeHead(200, { "content-type": "text/event-stream" });
  for (const part of [
    said({ role: "assistant", content: "" }, null),
    said({ content: "Indeed." }, null),
    said({}, "stop"),
  ])
    answer.write(part);
  answer.end(`${chunk({ choices: [], usage })}data: [DONE]\n\n`);
}).listen(0, "127.0.0.1");
await new Promise((listening) => engine.once("listening", listening));
const service = await listeningChild(
  ["--import", `data:text/javascript,${encodeURIComponent(PRELOAD)}`, MAIN, "serve"],
  {
    COVERAGE_FILE: coverage,
    MEMPREFIX_PORT: "0",
    MEMPREFIX_SOURCE: "none",
    MEMPREFIX_LOG_LEVEL: "silent",
    MEMPREFIX_DATA_DIR: join(directory, "data"),
    MEMPREFIX_UPSTREAM_URL: `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`,
  },
);

/** What ran since the last call. */
async function taken(): Promise<readonly Passed[]> {
  rmSync(coverage, { force: true });
  service.child.kill("SIGUSR2");
  while (!existsSync(coverage)) await setTimeout(10);
  const scripts = JSON.parse(readFileSync(coverage, "utf8")) as Profiler.ScriptCoverage[];
  return scripts
    .filter(({ url }) => url.startsWith(BUILT))
    .map(passedIn)
    .filter(({ functions }) => functions > 0);
}

/** The messages of a conversation's turn, from 0; and the memories found for it, of which some came before. */
function turnOf(turn: number) {
  const messages = Array.from({ length: turn + 1 }, (_, at) => [
    { role: "user", content: `What did we say about place ${at}?` },
    ...(at < turn ? [{ role: "assistant", content: "Indeed." }] : []),
  ]).flat();
  const memories = Array.from({ length: K }, (_, at) => {
    const id = turn * 5 + at;
    return { id: `m-${id}`, memory: `Place ${id} was visited in spring ${2000 + id}, and liked for its gardens.` };
  });
  return { messages, memories };
}

async function post(path: string, body: object): Promise<void> {
  const answer = await fetch(`${new URL(service.address).origin}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-memprefix-user": "ana", "x-memprefix-conversation": "one" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status} ${text}`);
}

const REQUESTS: Readonly<Record<string, (turn: number) => Promise<void>>> = {
  "POST /compose": (turn) => post("/compose", { user_id: "bob", conversation_id: "one", ...turnOf(turn) }),
  "streamed chat": async (turn) => {
    const { messages, memories } = turnOf(turn);
    await post("/v1/chat/completions", { model: "stub", stream: true, messages, memprefix: { memories } });
    await setTimeout(LEARNED_MS);
  },
};

const sum = (passed: readonly Passed[], field: "functions" | "lines") =>
  passed.reduce((total, one) => total + one[field], 0);
printHead(["request", "room", "files", "functions", "lines"]);
for (const [name, request] of Object.entries(REQUESTS)) {
  for (let turn = 0; turn < TURNS - 1; turn++) await request(turn);
  await setTimeout(SETTLED_MS);
  await taken();
  await request(TURNS - 1);
  const passed = (await taken()).toSorted((a, b) => (a.file < b.file ? -1 : 1));
  const rooms = new Set(passed.map(({ file }) => file.split("/")[0] ?? ""));
  for (const room of ["all", ...rooms]) {
    const inRoom = passed.filter(({ file }) => room === "all" || file.startsWith(`${room}/`));
    printRow([name, room, inRoom.length, sum(inRoom, "functions"), sum(inRoom, "lines")]);
  }
  if (process.env["FILES"] === "1")
    for (const { file, functions, lines } of passed) console.log(`${file} ${functions} ${lines}`);
}
await service.stop();
engine.close();
rmSync(directory, { recursive: true });
