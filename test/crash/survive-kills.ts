import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkDatabase } from "../../src/store/check/check-database.js";
import { openDatabase } from "../../src/store/database/open-database.js";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.js";
import { type Ended, launch, listening } from "../cli/launch.js";
import {
  type Actor,
  asker,
  batcher,
  Choices,
  type Deeds,
  engine,
  type Forgotten,
  forgetter,
  isForgetful,
  leaver,
  marksIn,
  talker,
} from "./actors.js";
import { type Answered, Answers, ask, GONE } from "./answers.js";
import { chatter, type WatchingEngine, watchingEngine } from "./chatting.js";

/** What a service is put through. */
export interface Ordeal {
  /** An empty directory. */
  readonly directory: string;
  readonly kills: number;
  readonly seed: number;
  /** Services that run side by side on the directory; two also chat, with an engine, and keep exchanges as memories. Default: 1. */
  readonly services?: 1 | 2;
  readonly print?: (line: string) => void;
}

/** What it came to. */
export interface Survival extends Deeds {
  readonly kills: number;
  /** Of them, those before the service had begun to listen. */
  readonly killedAtStart: number;
  /** Composes that were answered and not forgotten. */
  readonly answered: number;
  /** Answers that were asked for again and compared, byte by byte. */
  readonly repeated: number;
  /** Scopes and requests that the database held in the end. */
  readonly scopes: number;
  readonly requests: number;
}

const TALKERS = ["a0", "a1", "a2", "a3"];
const BATCHED = ["b0", "b1", "b2", "b3", "b4"];
/** Older answers that are asked for again after each kill, beside those since the one before. */
const SAMPLE = 150;
const ASKED_AT_ONCE = 12;

/**
 * Runs the built service, or two on one directory, under many users at once, kills with SIGKILL at random moments, and looks after each:
 * whether the database holds to its promises, whether what was forgotten is out of the files, whether every answer comes back with the same bytes. Rejects
 * with the first promise that was broken.
 */
export async function surviveKills(ordeal: Ordeal): Promise<Survival> {
  const forgotten: Forgotten = { gone: new Set(), going: new Set() };
  const chatEngine = await watchingEngine(forgotten);
  try {
    return await surviveWith(chatEngine, forgotten, ordeal);
  } finally {
    await chatEngine.close();
  }
}

async function surviveWith(
  chatEngine: WatchingEngine,
  forgotten: Forgotten,
  { directory, kills, seed, services: count = 1, print = () => {} }: Ordeal,
): Promise<Survival> {
  const choices = new Choices(seed);
  const answers = new Answers();
  const deeds: Deeds = {
    turns: 0,
    chats: 0,
    batches: 0,
    evictions: 0,
    reports: 0,
    forgottenMemories: 0,
    forgottenUsers: 0,
  };
  const own = (n: number) => new Choices(seed + 1_000 * (n + 1));
  const actors: Actor[] = [
    ...TALKERS.map((user, n) => talker(answers, deeds, user, own(n))),
    ...TALKERS.slice(2).map((user, n) => asker(answers, user, own(10 + n))),
    asker(answers, "a9", own(15)),
    batcher(answers, deeds, BATCHED, own(20)),
    engine(answers, deeds, own(30)),
    ...["f0", "f1"].map((user, n) => forgetter(answers, deeds, forgotten, user, own(40 + n))),
    ...["l0", "l1"].map((user, n) => leaver(answers, deeds, forgotten, user, own(50 + n))),
    ...["w0", "w1"]
      .slice(0, 2 * (count - 1))
      .map((user, n) => chatter(chatEngine, deeds, forgotten, user, own(60 + n))),
  ];
  const data = join(directory, "data");
  const start = () =>
    launch(["serve"], {
      PATH: process.env["PATH"] ?? "",
      HOME: directory,
      MEMSTEM_DATA_DIR: data,
      MEMSTEM_PORT: "0",
      MEMSTEM_SOURCE: count === 1 ? "none" : "embedded",
      MEMSTEM_UPSTREAM_URL: chatEngine.url,
      MEMSTEM_LOG_LEVEL: "error",
      // A slow machine is no reason to turn anything away here.
      MEMSTEM_MAX_LAG_MS: "600000",
    });
  let repeated = 0;
  let killedAtStart = 0;
  let last = { scopes: 0, requests: 0 };
  for (let kill = 0; ; kill++) {
    last = (await checkFiles(data, forgotten, count)) ?? last;
    const services = Array.from({ length: count }, start);
    try {
      if (kill < kills && choices.pick(12) === 0) {
        const pause = new Promise((resolve) => setTimeout(resolve, choices.pick(600)));
        await Promise.race([pause, ...services.map(listening)]);
        killedAtStart++;
      } else {
        const addresses = await Promise.all(services.map(listening));
        const address = () => addresses[choices.pick(count)] ?? "";
        const again = kill === kills ? answers.all() : [...answers.fresh, ...sampleOf(answers.all(), choices)];
        await repeat(address, again, forgotten);
        repeated += again.length;
        answers.fresh.length = 0;
        if (kill === kills) break;
        const acting = Promise.all(actors.map((actor) => actor(address)));
        const enough = answers.arrived + 20 + choices.pick(180);
        // Chats begin once Mem0 has started.
        const enoughChats = deeds.chats + 2 * (count - 1);
        const isEnough = () => answers.arrived >= enough && deeds.chats >= enoughChats;
        let isOver = false;
        await Promise.race([until(() => isOver || isEnough()), acting]).finally(() => {
          isOver = true;
        });
        for (const { child } of services) {
          await new Promise((resolve) => setTimeout(resolve, choices.pick(15)));
          child.kill("SIGKILL");
        }
        await acting;
      }
    } finally {
      for (const { child, ended } of services) {
        child.kill("SIGKILL");
        died(await ended);
      }
    }
    if (chatEngine.told.length > 0) throw new Error(`the engine is told ${chatEngine.told}, which was forgotten`);
    if ((kill + 1) % 10 === 0) print(`${kill + 1} kills, ${answers.size} answers kept`);
  }
  last = (await checkFiles(data, forgotten, count)) ?? last;
  for (const user of [...TALKERS, ...BATCHED]) checkLabels(answers, user);
  return { kills, killedAtStart, answered: answers.size, repeated, ...deeds, ...last };
}

/** What a dead service left: a database that holds to its promises, and nothing of what it said is forgotten. */
async function checkFiles(
  data: string,
  { gone }: Forgotten,
  services: number,
): Promise<{ scopes: number; requests: number } | null> {
  const file = join(data, "memstem.db");
  if (!existsSync(file)) return null;
  if (services > 1) {
    // What one deletes while another reads stays in the log until the next process finishes it.
    const store = new SqliteStore(openDatabase(file));
    store.emptyLog();
    await store.erased();
    store.close();
  }
  // Before it is opened: opening may write the log back.
  for (const path of [file, `${file}-wal`]) {
    if (!existsSync(path)) continue;
    for (const name of marksIn(readFileSync(path, "latin1")))
      if (gone.has(name)) throw new Error(`${name} was forgotten and stands in ${path}`);
  }
  // A service that was killed before it had made its tables.
  const { schema, scopes, requests, findings } = checkDatabase(file);
  if (findings.length > 0) throw new Error(`the database is wrong:\n${findings.join("\n")}`);
  return schema.applied === 0 ? null : { scopes, requests };
}

/** Every answer comes back as it was; where a memory of it was forgotten since, without that. */
async function repeat(address: () => string, answered: readonly Answered[], { gone, going }: Forgotten): Promise<void> {
  const left = [...answered];
  const one = async () => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { body, text } = next;
      const again = await ask(address(), "POST", "/compose", body);
      if (again === GONE) throw new Error("the service died by itself");
      const isTouched = isForgetful(body.user_id) && [...marksIn(text)].some((name) => going.has(name));
      const told = [...marksIn(again)].filter((name) => gone.has(name));
      if (told.length > 0) throw new Error(`${body.request_id} tells ${told}, which was forgotten`);
      if (!isTouched && again !== text) throw new Error(`${body.request_id} came back changed:\n${text}\n${again}`);
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, one));
}

/** One text for a label, one label for a text, whatever was killed in between. */
function checkLabels(answers: Answers, user: string): void {
  const texts = answers.textsByLabel(user);
  const distinct = new Set([...texts.values()].flatMap((ofLabel) => [...ofLabel]));
  if ([...texts.values()].some((ofLabel) => ofLabel.size > 1)) throw new Error(`${user}: a label with two texts`);
  if (distinct.size !== texts.size) throw new Error(`${user}: a text with two labels`);
}

function sampleOf(answered: readonly Answered[], choices: Choices): Answered[] {
  const chosen = new Set<Answered>();
  for (let n = 0; n < SAMPLE && answered.length > 0; n++)
    chosen.add(answered[choices.pick(answered.length)] as Answered);
  return [...chosen];
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 1));
}

function died({ signal, code, stderr }: Ended): void {
  if (signal !== "SIGKILL" || stderr !== "") throw new Error(`the service ended with ${signal ?? code}: ${stderr}`);
}
