import pg from "pg";
import { loadEveryUser } from "../../src/cli/stored-users.js";
import { clientConfig } from "../../src/store/postgres/connections.js";
import { openPostgres } from "../../src/store/postgres/open.js";
import { SCHEMA } from "../../src/store/postgres/statements.js";
import { storeIn } from "../../src/store/sql-store.js";
import { createDatabase, startServer } from "../postgres/embedded-server.js";
import { Choices, type Forgotten, isEachDone, marksIn } from "./actors.js";
import { Answers } from "./answers.js";
import { type Cast, castOf, choicesOf } from "./cast.js";
import { replayer, watchingEngine } from "./chatting.js";
import { Instances, KilledServer } from "./instances.js";
import { checkLabels, repeatAnswers, until } from "./promises.js";

/** What instances on one PostgreSQL database are put through. */
export interface ServerOrdeal {
  /** An empty directory. */
  readonly directory: string;
  /** Rounds: an even one kills instances, an odd one the server, and often an instance with it. */
  readonly kills: number;
  readonly seed: number;
  readonly services: number;
  readonly print?: (line: string) => void;
}

/** Answers before a kill at least, those on top of them at most, and those after it at least. */
const BEFORE = 20;
const MORE = 130;
const AFTER = 20;
/** Milliseconds between an actor's request that got no answer and its next attempt. */
const AGAIN_MS = 10;

/**
 * Runs instances of the built service on a PostgreSQL server of their own, under many users whose every request goes to any of them, kills
 * instances and the server with SIGKILL at random moments while the others go on, and looks after each: whether every answer comes back
 * from any instance with the same bytes, whether what was forgotten is out of the database, whether its rows agree. Rejects with the first
 * promise that was broken. Gives how much was done: also requests rejected with 503 while the server was away, and instances started in vain.
 */
export async function surviveServerKills(ordeal: ServerOrdeal) {
  const { directory, kills, seed, services: count, print = () => {} } = ordeal;
  const forgotten: Forgotten = { gone: new Set(), going: new Set() };
  const engine = await watchingEngine(forgotten);
  const embedded = await startServer();
  const server = new KilledServer(embedded);
  const choices = new Choices(seed);
  const asked = castOf(seed, new Answers(), forgotten);
  const { answers, deeds } = asked;
  const replayers = ["c0", "c1"].map((user, n) => replayer(engine, deeds, forgotten, user, choicesOf(seed, 60 + n)));
  const cast = { ...asked, actors: [...asked.actors, ...replayers] };
  const url = await createDatabase(embedded.url, "killed");
  const environment = {
    PATH: process.env["PATH"] ?? "",
    HOME: directory,
    MEMPREFIX_DATABASE_URL: url,
    MEMPREFIX_PORT: "0",
    MEMPREFIX_SOURCE: "none",
    MEMPREFIX_UPSTREAM_URL: engine.url,
    // A service that forgot by its end what is cached may start a conversation afresh; what is kept is what is looked at.
    MEMPREFIX_RETENTION: "keep",
    MEMPREFIX_LOG_LEVEL: "error",
  };
  const instances = new Instances(environment, server, choices);
  const killAnything = async (isOfServer: boolean) => {
    const one = choices.pick(count);
    if (!isOfServer) await killInstances(instances, choices, count);
    else if (choices.pick(2) === 0) await server.killFor(pauseOf(choices));
    else await Promise.all([server.killFor(pauseOf(choices)), killSoon(instances, choices, one)]);
  };
  let repeated = 0;
  let requests = 0;
  try {
    await instances.start(count);
    for (let kill = 0; kill < kills; kill++) {
      const isLast = kill === kills - 1;
      const isEnough = () => !isLast || isEachDone(deeds, true);
      await surviveRound(cast, instances, () => killAnything(kill % 2 === 1), choices, isEnough);
      instances.ask(true);
      repeated += await repeatAnswers(instances, answers, forgotten, isLast ? null : choices);
      instances.ask(false);
      if (engine.told.length > 0) throw new Error(`the engine is told ${engine.told}, which was forgotten`);
      requests = await checkServer(url, forgotten);
      if ((kill + 1) % 10 === 0) print(`${kill + 1} kills, ${answers.size} answers kept`);
    }
  } finally {
    await instances.stop();
    await embedded.stop();
    await engine.close();
  }
  checkLabels(answers);
  const { kills: killedInstances, rejections, vainStarts } = instances;
  const counts = { killedInstances, serverKills: server.kills, rejections, vainStarts };
  return { ...counts, answered: answers.size, repeated, ...deeds, requests };
}

/** Has everybody ask for things, kills meanwhile, not before enough was done, and waits for answers afterwards. */
async function surviveRound(
  { actors, answers }: Cast,
  instances: Instances,
  kill: () => Promise<void>,
  choices: Choices,
  isEnough: () => boolean,
): Promise<void> {
  instances.ask(true);
  let isOver = false;
  const acting = Promise.all(
    actors.map(async (actor) => {
      while (!isOver) {
        await actor(instances);
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }),
  );
  const arrived = async (more: number) => {
    const enough = answers.arrived + more;
    await Promise.race([until(() => isOver || answers.arrived >= enough), acting]);
  };
  const killing = async () => {
    await arrived(BEFORE + choices.pick(MORE));
    await until(() => isOver || isEnough());
    await kill();
    await arrived(AFTER);
  };
  try {
    await Promise.race([killing(), acting]);
  } finally {
    isOver = true;
    instances.ask(false);
  }
  await acting;
}

async function killInstances(instances: Instances, choices: Choices, count: number): Promise<void> {
  const first = choices.pick(count);
  const second = (first + 1) % count;
  await Promise.all([
    instances.replace(first),
    ...(choices.pick(3) === 0 && second !== first ? [killSoon(instances, choices, second)] : []),
  ]);
}

async function killSoon(instances: Instances, choices: Choices, at: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, choices.pick(300)));
  await instances.replace(at);
}

/** Milliseconds that the server is away: sometimes longer than commits wait for it. */
function pauseOf(choices: Choices): number {
  return choices.pick(4) === 0 ? 2_500 + choices.pick(1_500) : choices.pick(400);
}

/** Checks a PostgreSQL database: no row has a forgotten text, and every user loads. Throws if not. Gives the number of requests. */
async function checkServer(url: string, { gone }: Forgotten): Promise<number> {
  const client = new pg.Client(clientConfig(url));
  await client.connect();
  try {
    await client.query("begin isolation level repeatable read read only");
    const { rows: tables } = await client.query<{ name: string }>(
      "select table_name as name from information_schema.tables where table_schema = $1",
      [SCHEMA],
    );
    for (const { name } of tables) {
      const { rows: texts } = await client.query<{ text: string }>(`select t::text as text from ${SCHEMA}.${name} t`);
      for (const { text } of texts)
        for (const mark of marksIn(text))
          if (gone.has(mark)) throw new Error(`${mark} was forgotten and is in ${name}`);
    }
    await client.query("commit");
  } finally {
    await client.end();
  }
  const store = storeIn(await openPostgres(url));
  const { requests, findings } = await loadEveryUser(store).finally(() => store.close());
  if (findings.length > 0) throw new Error(`the database is wrong:\n${findings.join("\n")}`);
  return requests;
}
