import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
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
  /** Whether users also chat, with an engine, and have exchanges kept as memories. Default: no. */
  readonly chats?: boolean;
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
 * Runs the built service under many users at once, kills it with SIGKILL at random moments, and checks after each: everything in the
 * database loads, nothing in its files was forgotten, every answer comes back with the same bytes. Rejects with the first promise that was
 * broken.
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
  { directory, kills, seed, chats = false, print = () => {} }: Ordeal,
): Promise<Survival> {
  const choices = new Choices(seed);
  const { actors: asking, answers, deeds } = castOf(seed, new Answers(), forgotten);
  const chatters = chats ? ["w0", "w1"] : [];
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
      MEMPREFIX_SOURCE: chats ? "embedded" : "none",
      MEMPREFIX_UPSTREAM_URL: chatEngine.url,
      // A service that forgot by its end what is cached may start a conversation afresh; what is kept is what is looked at.
      MEMPREFIX_RETENTION: "keep",
      MEMPREFIX_LOG_LEVEL: "error",
    });
  let repeated = 0;
  let killedAtStart = 0;
  let last = { users: 0, requests: 0 };
  for (let kill = 0; ; kill++) {
    last = (await checkFiles(data, forgotten)) ?? last;
    const service = start();
    try {
      if (kill < kills - 1 && choices.pick(12) === 0) {
        const pause = new Promise((resolve) => setTimeout(resolve, choices.pick(600)));
        await Promise.race([pause, listening(service)]);
        killedAtStart++;
      } else {
        const address = await listening(service);
        const asked = servicesAt(() => address);
        repeated += await repeatAnswers(asked, answers, forgotten, kill === kills ? null : choices);
        if (kill === kills) break;
        const acting = Promise.all(actors.map((actor) => actor(asked)));
        const enough = answers.arrived + 20 + choices.pick(180);
        // Chats begin once Mem0 has started.
        const enoughChats = deeds.chats + chatters.length;
        // That it held is worth nothing where little was done, as on a slow machine: the last kill waits for a bit of everything.
        const isDone = () => kill < kills - 1 || isEachDone(deeds, chats);
        const isEnough = () => answers.arrived >= enough && deeds.chats >= enoughChats && isDone();
        let isOver = false;
        await Promise.race([until(() => isOver || isEnough()), acting]).finally(() => {
          isOver = true;
        });
        service.child.kill("SIGKILL");
        await acting;
      }
    } finally {
      service.child.kill("SIGKILL");
      checkKilled(await service.ended);
    }
    if (chatEngine.told.length > 0) throw new Error(`the engine is told ${chatEngine.told}, which was forgotten`);
    if ((kill + 1) % 10 === 0) print(`${kill + 1} kills, ${answers.size} answers kept`);
  }
  last = (await checkFiles(data, forgotten)) ?? last;
  checkLabels(answers);
  return { kills, killedAtStart, answered: answers.size, repeated, ...deeds, ...last };
}

/** What a dead service left: a database that holds to its promises, and nothing of what it said is forgotten. */
async function checkFiles(data: string, { gone }: Forgotten): Promise<{ users: number; requests: number } | null> {
  const file = join(data, "memprefix.db");
  if (!existsSync(file)) return null;
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
