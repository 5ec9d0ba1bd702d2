import { spawn, spawnSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../local-server.js";
import { execute, retried } from "./embedded-server.js";

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
  const exit = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill("SIGKILL");
    await exit;
    await rm(directory, { recursive: true });
  };
  try {
    await retried(() => execute(url.href, "select 1"), 100, 50);
  } catch (error) {
    await stop();
    throw new Error(`PgBouncer does not start: ${lines.join("")}`, { cause: error });
  }
  return { url: url.href, stop };
}
