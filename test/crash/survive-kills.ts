import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../src/store/database/open-database.js";
import { JournalStore } from "../../src/store/journal/journal-store.js";
import { journalIn } from "../../src/store/sqlite/sqlite-journal.js";
import { launch, listening } from "../cli/launch.js";
import { checkDatabase } from "../store/checked-database.js";
import { Choices, type Deeds, type Forgotten, isEachDone, marksIn } from "./actors.js";
import { Answers, servicesAt } from "./answers.js";
import { castOf, choicesOf } from "./cast.js";
import { chatter, type WatchingEngine, watchingEngine } from "./chatting.js";
import { checkKilled, checkLabels, repeatAnswers, until } from "./promises.js";

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
  readonly users: number;
  readonly requests: number;
}

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
  const { actors: asking, answers, deeds } = castOf(seed, new Answers(), forgotten);
  const chatters = ["w0", "w1"].slice(0, 2 * (count - 1));
  const actors = [
    ...asking,
    ...chatters.map((user, n) => chatter(chatEngine, deeds, forgotten, user, choicesOf(seed, 60 + n))),
  ];
  const data = join(directory, "data");
  const start = () =>
    launch(["serve"], {
      PATH: process.env["PATH"] ?? "",
      HOME: directory,
      MEMPREFIX_DATA_DIR: data,
      MEMPREFIX_PORT: "0",
      MEMPREFIX_SOURCE: count === 1 ? "none" : "embedded",
      MEMPREFIX_UPSTREAM_URL: chatEngine.url,
      // A service that forgot by its end what is cached may start a conversation afresh; what is kept is what is looked at.
      MEMPREFIX_RETENTION: "keep",
      MEMPREFIX_LOG_LEVEL: "error",
    });
  let repeated = 0;
  let killedAtStart = 0;
  let last = { users: 0, requests: 0 };
  for (let kill = 0; ; kill++) {
    last = (await checkFiles(data, forgotten, count)) ?? last;
    const services = Array.from({ length: count }, start);
    try {
      if (kill < kills - 1 && choices.pick(12) === 0) {
        const pause = new Promise((resolve) => setTimeout(resolve, choices.pick(600)));
        await Promise.race([pause, ...services.map(listening)]);
        killedAtStart++;
      } else {
        const addresses = await Promise.all(services.map(listening));
        const asked = servicesAt(() => addresses[choices.pick(count)] ?? "");
        repeated += await repeatAnswers(asked, answers, forgotten, kill === kills ? null : choices);
        if (kill === kills) break;
        const acting = Promise.all(actors.map((actor) => actor(asked)));
        const enough = answers.arrived + 20 + choices.pick(180);
        // Chats begin once Mem0 has started.
        const enoughChats = deeds.chats + 2 * (count - 1);
        // That it held is worth nothing where little was done, as on a slow machine: the last kill waits for a bit of everything.
        const isDone = () => kill < kills - 1 || isEachDone(deeds, count > 1);
        const isEnough = () => answers.arrived >= enough && deeds.chats >= enoughChats && isDone();
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
      for (const { child } of services) child.kill("SIGKILL");
      for (const ended of await Promise.all(services.map((service) => service.ended))) checkKilled(ended);
    }
    if (chatEngine.told.length > 0) throw new Error(`the engine is told ${chatEngine.told}, which was forgotten`);
    if ((kill + 1) % 10 === 0) print(`${kill + 1} kills, ${answers.size} answers kept`);
  }
  last = (await checkFiles(data, forgotten, count)) ?? last;
  checkLabels(answers);
  return { kills, killedAtStart, answered: answers.size, repeated, ...deeds, ...last };
}

/** What a dead service left: a database that holds to its promises, and nothing of what it said is forgotten. */
async function checkFiles(
  data: string,
  { gone }: Forgotten,
  services: number,
): Promise<{ users: number; requests: number } | null> {
  const file = join(data, "memprefix.db");
  if (!existsSync(file)) return null;
  if (services > 1) {
    // What one deletes while another reads stays in the log until the next process finishes it.
    const store = new JournalStore(journalIn(openDatabase(file)));
    await store.emptyLog();
    await store.erased();
    await store.close();
  }
  // Before it is opened: opening may write the log back.
  for (const path of [file, `${file}-wal`]) {
    if (!existsSync(path)) continue;
    for (const name of marksIn(readFileSync(path, "latin1")))
      if (gone.has(name)) throw new Error(`${name} was forgotten and stands in ${path}`);
  }
  const { users, requests, findings } = await checkDatabase(file);
  if (findings.length > 0) throw new Error(`the database is wrong:\n${findings.join("\n")}`);
  return { users, requests };
}
