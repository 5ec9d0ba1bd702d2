import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { seeded } from "../../src/eval/measures/bootstrap.js";
import { launch, listening } from "../cli/launch.js";
import { filesIn, type Message, PLACES, VERBATIM } from "./quotes.js";

/** How much is to be forgotten. */
export interface Oblivion {
  /** An empty directory. */
  readonly directory: string;
  readonly memories: number;
  readonly seed: number;
  readonly print?: (line: string) => void;
}

/** What it came to. */
export interface Found {
  readonly memories: number;
  readonly forgotten: number;
  readonly quotes: number;
  /** Requests that reached the engine with a memory's mark before it was forgotten, … */
  readonly sentBefore: number;
  /** … and all that did after one was. */
  readonly sentAfter: number;
  /** Marks of memories that nobody asked to forget which stand in a file. */
  readonly kept: number;
  /** Where a forgotten memory still stands. Empty, where the promise holds. */
  readonly left: readonly string[];
}

interface Kept {
  readonly id: string;
  readonly text: string;
  readonly mark: string;
}

const MEMORIES_OF_A_USER = 8;
const USERS_AT_ONCE = 6;
const AGENTS = [null, "planner", "coach"] as const;
const MARK = /zqx[a-z]{9}/g;

/** What memories are made of, beside their marks. */
const PIECES = [
  'says "no"',
  "it's",
  "\n",
  "\r\n",
  "\n  ",
  "\\",
  "\\n",
  "C:\\temp\\new",
  "\\u0041",
  "[7]",
  "[Doc_1](replaces [Doc_2])",
  "<memories>",
  "</memories>",
  "<think>",
  "<|im_start|>",
  "[INST]",
  "</s>",
  "100%",
  "%41",
  "&amp;",
  "&",
  "Zürich",
  "naïve",
  "日本語",
  "😀",
  "مرحبا",
  "\t",
  '{"a":1}',
  "a/b",
  "likes green tea",
  "lives in Paris",
  "4711",
  "ﬁne",
  "e\u0301",
] as const;

/**
 * Sends random memories and word-for-word quotes of them, anywhere in a prompt, as several agents, to a built service with a stub engine.
 * Then most are forgotten, alone or with their user. Looks for what is left of them: in every file, in what the service printed, in
 * what the engine was sent afterwards.
 */
export async function forgetQuotes({ directory, memories, seed, print = () => {} }: Oblivion): Promise<Found> {
  // Users take turns as their requests end, so each draws numbers of its own.
  const drawing = (from: number) => {
    const random = seeded(from);
    const pick = (count: number) => Math.floor(random() * count);
    return { pick, oneOf: <T>(all: readonly T[]): T => all[pick(all.length)] as T };
  };
  const engine = await recordingEngine();
  const data = join(directory, "data");
  const service = launch(["serve"], {
    PATH: process.env["PATH"] ?? "",
    HOME: directory,
    MEMPREFIX_DATA_DIR: data,
    MEMPREFIX_PORT: "0",
    MEMPREFIX_SOURCE: "none",
    MEMPREFIX_UPSTREAM_URL: engine.url,
    MEMPREFIX_LOG_LEVEL: "debug",
  });
  const address = await listening(service);

  const forgottenAt = new Map<string, number>();
  const remaining = new Set<string>();
  let quotes = 0;
  let requests = 0;

  async function ask(method: string, path: string, body?: object): Promise<void> {
    const answer = await fetch(address + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  }

  /** By `/compose` or as a chat; a chat reaches the engine. */
  async function say(settings: object, said: readonly Message[], isChat: boolean): Promise<void> {
    const request_id = `r-${++requests}`;
    if (!isChat) return ask("POST", "/compose", { ...settings, request_id, messages: said });
    const memprefix = { ...settings, request_id };
    return ask("POST", "/v1/chat/completions", { model: "m", messages: said, memprefix });
  }

  async function liveAndBeForgotten(number: number, own: readonly Kept[]): Promise<void> {
    const user = `user-${number}`;
    const { pick, oneOf } = drawing(seed + 1 + number);
    const talks = new Map<string, { readonly settings: object; readonly history: Message[] }>();
    for (const { id, text } of own) {
      const agent_id = oneOf(AGENTS);
      const conversation_id = `c-${pick(2)}`;
      const settings = { user_id: user, agent_id, conversation_id };
      const talk = talks.get(`${agent_id} ${conversation_id}`) ?? { settings, history: [] };
      talks.set(`${agent_id} ${conversation_id}`, talk);
      talk.history.push({ role: "user", content: `Question ${talk.history.length}?` });
      await say({ ...settings, memories: [{ id, memory: text }] }, talk.history, pick(2) === 0);
      talk.history.push({ role: "assistant", content: "So it is." });
    }
    for (const { text } of own) {
      for (let count = 1 + pick(3); count > 0; count--) {
        quotes++;
        const quote = oneOf(Object.values(VERBATIM))(text);
        const said = oneOf(Object.values(PLACES))(`${oneOf(["", "x ", "\\", "\n"])}${quote}`);
        const settings = { user_id: user, agent_id: oneOf(AGENTS), memories: [] };
        await say(settings, said, pick(3) === 0);
      }
    }
    // Something stays, however few there are: what is looked for can be found.
    const staysFirst = number === 0;
    if (!staysFirst && pick(4) === 0) {
      await ask("DELETE", `/users/${user}`);
      for (const { mark } of own) forgottenAt.set(mark, engine.received.length);
    } else {
      for (const [at, { id, mark }] of own.entries()) {
        if ((staysFirst && at === 0) || pick(8) === 0) remaining.add(mark);
        else {
          await ask("DELETE", `/users/${user}/memories/${id}`);
          forgottenAt.set(mark, engine.received.length);
        }
      }
    }
    for (const { settings, history } of talks.values()) {
      history.push({ role: "user", content: "And now?" });
      await say({ ...settings, memories: [] }, history, true);
    }
  }

  try {
    const { pick, oneOf } = drawing(seed);
    const all = Array.from({ length: memories }, (_, n) => randomMemory(n, pick, oneOf));
    const users = Array.from({ length: Math.ceil(memories / MEMORIES_OF_A_USER) }, (_, n) => n);
    const total = users.length;
    let done = 0;
    const work = async () => {
      for (let n = users.shift(); n !== undefined; n = users.shift()) {
        await liveAndBeForgotten(n, all.slice(n * MEMORIES_OF_A_USER, (n + 1) * MEMORIES_OF_A_USER));
        if (++done % 25 === 0) print(`${done} of ${total} users`);
      }
    };
    await Promise.all(Array.from({ length: USERS_AT_ONCE }, work));

    const left: string[] = [];
    for (const [at, body] of engine.received.entries())
      for (const mark of marksIn(body)) if ((forgottenAt.get(mark) ?? Infinity) <= at) left.push(`${mark}: engine`);
    const standing = filesIn(directory).map((file) => ({ file, marks: marksIn(readFileSync(file, "latin1")) }));
    for (const { file, marks } of standing)
      for (const mark of marks) if (forgottenAt.has(mark)) left.push(`${mark}: ${file}`);
    const kept = new Set(standing.flatMap(({ marks }) => [...marks]).filter((mark) => remaining.has(mark)));
    const first = Math.min(...forgottenAt.values());
    const sentBefore = engine.received.slice(0, first).filter((body) => marksIn(body).size > 0).length;
    service.child.kill("SIGTERM");
    const { stdout, stderr } = await service.ended;
    for (const mark of marksIn(stdout + stderr)) left.push(`${mark}: log`);
    const sentAfter = engine.received.length - first;
    return { memories, forgotten: forgottenAt.size, quotes, sentBefore, sentAfter, kept: kept.size, left };
  } catch (error) {
    print(service.stderr());
    throw error;
  } finally {
    service.child.kill("SIGKILL");
    await service.ended;
    engine.close();
  }
}

function randomMemory(n: number, pick: (count: number) => number, oneOf: <T>(all: readonly T[]) => T): Kept {
  const mark = `zqx${Array.from({ length: 9 }, () => String.fromCharCode(97 + pick(26))).join("")}`;
  const around = () => Array.from({ length: pick(5) }, () => oneOf(PIECES)).join(oneOf([" ", ""]));
  // The mark is a word: an escape before it must not take its first letter.
  const text = `${around()} ${mark} ${around()}`.trim();
  // Some are longer than what a prompt takes of a memory.
  const filler = pick(50) === 0 ? ` ${mark} and so on,`.repeat(5_500) : "";
  return { id: `m-${n}`, text: text + filler, mark };
}

function marksIn(text: string): Set<string> {
  return new Set(text.match(MARK) ?? []);
}

/** An OpenAI-compatible engine that keeps what it is sent. */
async function recordingEngine() {
  const received: string[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      received.push(Buffer.concat(pieces).toString());
      const message = { role: "assistant", content: "So it is." };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const choices = [{ index: 0, message, finish_reason: "stop" }];
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ id: "1", object: "chat.completion", created: 1, model: "m", choices, usage }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/v1`, received, close: () => server.close() };
}
