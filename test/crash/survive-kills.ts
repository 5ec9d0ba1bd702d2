import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Launched, launch, listening } from "../cli/launch.js";
import { checkDatabase } from "../store/checked-database.js";
import { Choices, type Forgotten, isEachDone, marksIn } from "./actors.js";
import { Answers, servicesAt } from "./answers.js";
import { castOf, choicesOf } from "./cast.js";
import { chatter, watchingEngine } from "./chatting.js";
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

/**
 * Runs the built service under many users at once, kills it with SIGKILL at random moments, and checks after each: everything in the
 * database loads, nothing in its files was forgotten, every answer comes back with the same bytes. Rejects with the first promise that was
 * broken. Gives how much was done: composes answered and not forgotten, answers compared byte by byte, and what the database held in the end.
 */
export async function surviveKills({ directory, kills, seed, chats = false, print = () => {} }: Ordeal) {
  const forgotten: Forgotten = { gone: new Set(), going: new Set() };
  const chatEngine = await watchingEngine(forgotten);
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
  /** A service's life; it is killed unless it is the last. */
  const live = async (service: Launched, isLast: boolean, isLastKill: boolean) => {
    if (!isLast && !isLastKill && choices.pick(12) === 0) {
      // Maybe before it listens.
      const pause = new Promise((resolve) => setTimeout(resolve, choices.pick(600)));
      return void (await Promise.race([pause, listening(service)]));
    }
    const address = await listening(service);
    const asked = servicesAt(() => address);
    repeated += await repeatAnswers(asked, answers, forgotten, isLast ? null : choices);
    if (isLast) return;
    const acting = Promise.all(actors.map((actor) => actor(asked)));
    const enough = answers.arrived + 20 + choices.pick(180);
    // Chats begin once Mem0 has started.
    const enoughChats = deeds.chats + chatters.length;
    // That it held is worth nothing where little was done, as on a slow machine: the last kill waits for a bit of everything.
    const isDone = () => !isLastKill || isEachDone(deeds, chats);
    const isEnough = () => answers.arrived >= enough && deeds.chats >= enoughChats && isDone();
    let isOver = false;
    await Promise.race([until(() => isOver || isEnough()), acting]).finally(() => {
      isOver = true;
    });
    service.child.kill("SIGKILL");
    await acting;
  };
  try {
    for (let kill = 0; kill <= kills; kill++) {
      await checkFiles(data, forgotten);
      const service = start();
      try {
        await live(service, kill === kills, kill === kills - 1);
      } finally {
        service.child.kill("SIGKILL");
        checkKilled(await service.ended);
      }
      if (chatEngine.told.length > 0) throw new Error(`the engine is told ${chatEngine.told}, which was forgotten`);
      if ((kill + 1) % 10 === 0) print(`${kill + 1} kills, ${answers.size} answers kept`);
    }
  } finally {
    await chatEngine.close();
  }
  checkLabels(answers);
  return { kills, answered: answers.size, repeated, ...deeds, requests: await checkFiles(data, forgotten) };
}

/** What a dead service left: a database that holds to its promises, and nothing of what it said is forgotten. Gives its requests. */
async function checkFiles(data: string, { gone }: Forgotten): Promise<number> {
  const file = join(data, "memprefix.db");
  if (!existsSync(file)) return 0;
  // Before it is opened: opening may write the log back.
  for (const path of [file, `${file}-wal`]) {
    if (!existsSync(path)) continue;
    for (const name of marksIn(readFileSync(path, "latin1")))
      if (gone.has(name)) throw new Error(`${name} was forgotten and stands in ${path}`);
  }
  const { requests, findings } = await checkDatabase(file);
  if (findings.length > 0) throw new Error(`the database is wrong:\n${findings.join("\n")}`);
  return requests;
}
