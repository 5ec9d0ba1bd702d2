import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { freePort } from "../local-server.js";

/** A PgBouncer in transaction mode in front of a server. */
export interface PgBouncer {
  /** The server's URL, through it. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Why there is no PgBouncer to test with; null: there is one. */
export const missingPgBouncer =
  spawnSync("pgbouncer", ["--version"]).error === undefined ? null : "pgbouncer is not installed";

/** Connections to the server, for each database: fewer than the clients that share them. */
const POOL_SIZE = 6;

const START_ATTEMPTS = 100;
const START_WAIT_MS = 50;

export async function startPgBouncer(serverUrl: string): Promise<PgBouncer> {
  const { hostname, port: serverPort, username, password } = new URL(serverUrl);
  const directory = await mkdtemp(join(tmpdir(), "memprefix-pgbouncer-"));
  // It does not run as root.
  await chmod(directory, 0o755);
  const port = await freePort();
  const users = join(directory, "users.txt");
  const config = join(directory, "pgbouncer.ini");
  await writeFile(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`);
  await writeFile(
    config,
    `[databases]
* = host=${hostname} port=${serverPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${POOL_SIZE}
max_client_conn = 500
`,
  );
  const lines: string[] = [];
  const asUser = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = spawn("pgbouncer", [...asUser, config], { stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => lines.push(String(data)));
  const url = new URL(serverUrl);
  url.port = String(port);
  const stop = async () => {
    await ended(child);
    await rm(directory, { recursive: true });
  };
  try {
    await answers(url.href);
  } catch (error) {
    await stop();
    throw new Error(`PgBouncer does not start: ${lines.join("")}`, { cause: error });
  }
  return { url: url.href, stop };
}

async function answers(url: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const client = new pg.Client(url);
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error;
      await setTimeout(START_WAIT_MS);
    }
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exit;
}
