import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { seeded } from "../../../bench/seeded.js";
import { indexResult } from "../../../src/http/contracts/user-contract.js";
import { childOutput } from "../../child-output.js";
import { endingWithUs } from "../../ending-children.js";
import { receivedOf } from "../server/received.js";
import type { Held } from "../server/watched-service.js";
import { type Happening, wrongAnswer } from "./fault-outcomes.js";
import type { FaultWire, Json } from "./fault-wires.js";
import {
  CALLER_HEADER,
  ENGINE_CONDUCTS,
  type EngineConduct,
  type FaultyEngine,
  faultyEngine,
} from "./faulty-engine.js";

/** What a run of faults came to. */
export interface FaultRun {
  /** Calls by what happened to them. */
  readonly counts: Readonly<Record<string, number>>;
  /** Calls that did not end as they should have. */
  readonly wrong: readonly string[];
  /** After each third of the calls, when all had ended. */
  readonly held: readonly Held[];
  /** Connections to the engine, and calls there, that were still open after each third. */
  readonly engine: readonly { readonly connections: number; readonly calls: number }[];
  /** Of one answered call of each user afterwards. */
  readonly expectations: readonly { readonly expected: number; readonly observed: number; readonly prompt: number }[];
  /** Users' indexes as the service had them at its end, and as another one read them from its database. */
  readonly indexes: readonly { readonly running: unknown; readonly reloaded: unknown }[];
  /** Requests that an engine never answered, and that are expected to hit all the same. */
  readonly stillExpected: readonly string[];
  /** What the service wrote at the log level `error`. */
  readonly stderr: string;
}

const USERS = 8;
const FACTS = Array.from({ length: 24 }, (_, n) => ({
  id: `fact-${n}`,
  memory: `Fact ${n}: there are ${n + 3} houses on street ${n * 7}.`,
}));

export interface FaultPlan {
  readonly wire: FaultWire;
  readonly calls: number;
  readonly seed: number;
  /** Milliseconds that the first byte may take: with room for the pauses of a loaded machine, for an engine that hangs takes as long. */
  readonly firstByteMs: number;
}

/** Sends calls of all kinds mixed through a service in a process of its own. */
export async function runFaults({ wire, calls, seed, firstByteMs }: FaultPlan): Promise<FaultRun> {
  const dataDir = mkdtempSync(join(tmpdir(), "memprefix-faults-"));
  const engine = await faultyEngine(wire);
  const start = () => watchedService(dataDir, { url: engine.url, firstByteMs });
  let service = await start();
  const agent = new Agent({ keepAlive: true, maxSockets: USERS });
  try {
    const random = seeded(seed);
    const counts: Record<string, number> = {};
    const wrong: string[] = [];
    const unserved: string[] = [];
    const call = async (user: string, happening: Happening, number: number) => {
      counts[happening] = (counts[happening] ?? 0) + 1;
      const id = `call-${number}`;
      if (NEVER_SERVED.has(happening)) unserved.push(id);
      const asked = { base: service.address, agent, user, id, memories: some(FACTS, random), engine, wire };
      const fault = await outcomeOf(happening, asked).catch((error: unknown) => String(error));
      if (fault !== null) wrong.push(`${id} (${happening}): ${fault}`);
    };
    const users = Array.from({ length: USERS }, (_, n) => `user-${n}`);
    const held: Held[] = [];
    const atEngine: { connections: number; calls: number }[] = [];
    let number = 0;
    for (let third = 0; third < 3; third++) {
      const ofThird = Math.round(calls / 3);
      const refused = Math.round(ofThird / 12);
      await engine.refuse();
      for (let n = 0; n < refused; n++) await call(users[n % USERS] ?? "", "refuses", number++);
      await engine.listen();
      // Every kind comes at least as often as the others, in an order of its own.
      const mixed = Array.from({ length: ofThird - refused }, (_, n) => MIXED[n % MIXED.length] ?? "answers whole");
      shuffle(mixed, random);
      const turn = async (user: string) => {
        for (let next = mixed.pop(); next !== undefined; next = mixed.pop()) await call(user, next, number++);
      };
      await Promise.all(users.map(turn));
      held.push(await service.held());
      atEngine.push({ connections: engine.connections, calls: engine.calls });
      // What was not used while the last call hung the service may be closing, just when the next call comes.
      agent.destroy();
    }
    const expectations = [];
    for (const user of users) {
      const memories = some(FACTS, random);
      for (const id of [`before-${user}`, `last-${user}`]) {
        const asked = { base: service.address, agent, user, id, memories, engine, wire };
        const answer = await responseTo(asked, "answers whole");
        const counted = wire.countedIn(JSON.parse((await bytesOf(answer)).toString("utf8")) as Json);
        expectations.push({
          expected: Number(answer.headers["x-memprefix-expected-cached-tokens"]),
          observed: counted.cached,
          prompt: counted.prompt,
        });
      }
    }
    const indexesOf = () => Promise.all(users.map((user) => indexOf(service.address, user)));
    const running = await indexesOf();
    const live = new Set(running.flatMap(({ nodes }) => nodes.flatMap(({ request_ids }) => request_ids)));
    agent.destroy();
    const stderr = await service.stop();
    service = await start();
    const reloaded = await indexesOf();
    return {
      counts,
      wrong,
      held,
      engine: atEngine,
      expectations,
      indexes: running.map((index, at) => ({ running: index, reloaded: reloaded[at] })),
      stillExpected: unserved.filter((id) => live.has(id)),
      stderr,
    };
  } finally {
    agent.destroy();
    await service.stop();
    await engine.close();
    rmSync(dataDir, { recursive: true });
  }
}

const MIXED: readonly Happening[] = [...ENGINE_CONDUCTS, "client leaves before the answer"];
const NEVER_SERVED = new Set<Happening>([
  "refuses",
  "hangs before headers",
  "answers with another protocol",
  "limits the rate",
  "dies in a whole answer",
]);

interface Asked {
  readonly base: string;
  readonly agent: Agent;
  readonly user: string;
  readonly id: string;
  readonly memories: readonly { readonly id: string; readonly memory: string }[];
  readonly engine: FaultyEngine;
  readonly wire: FaultWire;
}

/** Makes a call; null where it ended as it should, else what was wrong. */
async function outcomeOf(happening: Happening, asked: Asked): Promise<string | null> {
  const { user, engine, wire } = asked;
  switch (happening) {
    case "client leaves before the answer": {
      const taken = engine.taken(user).then(() => null);
      const leaving = open(asked, "hangs before headers");
      const answered = once(leaving, "response").then(([answer]) => `${(answer as IncomingMessage).statusCode}`);
      answered.catch(() => {});
      const answer = await Promise.race([taken, answered]);
      leaving.destroy();
      return answer;
    }
    case "goes on until the client leaves": {
      const answer = await responseTo(asked, happening);
      await once(answer, "data");
      answer.on("error", () => {}).destroy();
      return null;
    }
    default: {
      const answer = await responseTo(asked, happening === "refuses" ? "answers whole" : happening);
      return wrongAnswer(happening, wire, answer, await receivedOf(answer));
    }
  }
}

function open({ base, agent, user, id, memories, wire }: Asked, conduct: EngineConduct) {
  const isStream = conduct.includes("stream") || conduct.includes("events") || conduct.includes("goes on");
  const asked = wire.body({
    model: conduct,
    user,
    instructions: `You answer ${user}, and nobody else.`,
    question: `${id}?`,
    stream: isStream,
    isSmall: !conduct.includes("10 MB"),
  });
  const body = JSON.stringify({ ...asked, memprefix: { request_id: id, memories } });
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    [CALLER_HEADER]: user,
  };
  const outgoing = request(`${base}/v1/${wire.api.path}`, { method: "POST", agent, headers });
  outgoing.end(body);
  return outgoing;
}

async function responseTo(asked: Asked, conduct: EngineConduct): Promise<IncomingMessage> {
  const [answer] = (await once(open(asked, conduct), "response")) as [IncomingMessage];
  return answer;
}

async function bytesOf(answer: IncomingMessage): Promise<Buffer> {
  return Buffer.concat((await answer.toArray()) as Buffer[]);
}

async function indexOf(base: string, user: string) {
  const answer = await fetch(`${base}/users/${user}/index?limit=1000`, { headers: { connection: "close" } });
  if (answer.status !== 200) throw new Error(`index of ${user}: ${answer.status} ${await answer.text()}`);
  return indexResult.parse(await answer.json());
}

/** A few of them, in an order of their own. */
function some<T>(of: readonly T[], random: () => number): T[] {
  const chosen = [...of];
  shuffle(chosen, random);
  return chosen.slice(0, 3 + Math.floor(random() * 6));
}

function shuffle<T>(values: T[], random: () => number): void {
  for (let at = values.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [values[at], values[other]] = [values[other] as T, values[at] as T];
  }
}

interface WatchedUpstream {
  readonly url: string;
  readonly firstByteMs: number;
}

async function watchedService(dataDir: string, { url, firstByteMs }: WatchedUpstream) {
  const main = fileURLToPath(new URL("../server/watched-service.ts", import.meta.url));
  const environment = {
    MEMPREFIX_PORT: "0",
    MEMPREFIX_SOURCE: "none",
    MEMPREFIX_DATA_DIR: dataDir,
    MEMPREFIX_UPSTREAM_URL: url,
    // Read by the script that starts it.
    UPSTREAM_TIMEOUT_MS: String(firstByteMs),
    MEMPREFIX_LOG_LEVEL: "error",
  };
  const child: ChildProcess = spawn(process.execPath, ["--expose-gc", "--import", "tsx", main], {
    env: { PATH: process.env["PATH"], ...environment },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  endingWithUs(child);
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("the service has no output");
  const output = childOutput({ stdout, stderr });
  const ended = once(child, "close");
  const said = async (): Promise<unknown> => {
    const message = await Promise.race([once(child, "message"), ended.then(() => null)]);
    if (message === null) throw new Error(`the service ended: ${output.stderr}`);
    return message[0];
  };
  const address = (await said()) as string;
  let stopped: Promise<string> | undefined;
  return {
    address,
    held: () => {
      child.send("measure");
      return said() as Promise<Held>;
    },
    stop: () => {
      stopped ??= (async () => {
        if (child.connected) child.send("stop");
        await ended;
        return output.stderr;
      })();
      return stopped;
    },
  };
}
