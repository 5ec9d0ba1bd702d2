import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ListeningChild, listeningChild } from "./child-process.js";
import type { LoadDatabase } from "./load-database.js";
import { cpuMsOf, readDelay, WrittenSoFar } from "./process-figures.js";

/** The command line of the build that is measured. */
const MAIN = process.env["MAIN"] ?? fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const CONTROL = fileURLToPath(new URL("control-server.ts", import.meta.url));
/** Node's flags; by default those of `npm start`. */
const FLAGS = (process.env["NODE_FLAGS"] ?? "--max-semi-space-size=64").split(" ").filter(Boolean);

/** Processes that serve the same requests. */
export class LoadProcesses {
  #children: readonly ListeningChild[] = [];
  readonly #written = new WrittenSoFar();

  /** @param starts the arguments and the environment of each */
  constructor(
    private readonly starts: readonly {
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    }[],
  ) {}

  /** Starts all of them. Gives the milliseconds until the last one was ready. */
  async start(): Promise<number> {
    const started = performance.now();
    this.#children = await Promise.all(this.starts.map(({ args, env }) => listeningChild([...FLAGS, ...args], env)));
    return performance.now() - started;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop()));
  }

  get ports(): readonly number[] {
    return this.#children.map(({ address }) => Number(new URL(address).port));
  }

  /** Resident memory of all of them. */
  get rssMiB(): number {
    return this.#pids.reduce((sum, pid) => {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return sum + Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
    }, 0);
  }

  /** Of all their threads. */
  get cpuMs(): number {
    return cpuMsOf(this.#pids);
  }

  get writtenBytes(): number {
    return this.#written.read(this.#pids);
  }

  /** The longest delay of their event loops since the last call, at p99, in milliseconds. */
  async delayMs(): Promise<number> {
    const pages = this.ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
    return Math.max(...(await Promise.all(pages)).map(readDelay));
  }

  get #pids(): number[] {
    return this.#children.flatMap(({ child }) => child.pid ?? []);
  }
}

/** HTTP servers that only compute for a while per request: what the machine and the HTTP server cost. */
export function controlProcesses(count: number): LoadProcesses {
  return new LoadProcesses(Array.from({ length: count }, () => ({ args: ["--import", "tsx", CONTROL], env: {} })));
}

/** Services, each with a data directory of its own, or all on one PostgreSQL database. */
export class LoadServices extends LoadProcesses {
  readonly #directories: readonly string[];

  /** @param database null: SQLite files */
  constructor(
    count: number,
    readonly database: LoadDatabase | null,
  ) {
    const made = Array.from({ length: count }, () => mkdtempSync(join(tmpdir(), "memprefix-load-")));
    super(
      made.map((directory) => ({
        args: [MAIN, "serve"],
        env: {
          MEMPREFIX_PORT: "0",
          MEMPREFIX_SOURCE: "none",
          MEMPREFIX_LOG_LEVEL: "silent",
          MEMPREFIX_DATA_DIR: directory,
          ...(database === null ? {} : { MEMPREFIX_DATABASE_URL: database.url }),
        },
      })),
    );
    this.#directories = made;
  }

  /** Of their files, or of their server's: in the first case with the sockets, which Node writes to as it writes to files. */
  override get writtenBytes(): number {
    return this.database === null ? super.writtenBytes : this.database.writtenBytes;
  }

  /** Of the database server; 0 where there is none. */
  get databaseCpuMs(): number {
    return this.database?.cpuMs ?? 0;
  }

  /** Of all their databases, SQLite's logs included. */
  async databaseMB(): Promise<number> {
    if (this.database !== null) return this.database.megabytes();
    const files = this.#directories.flatMap((directory) =>
      ["", "-wal"].map((suffix) => join(directory, `memprefix.db${suffix}`)),
    );
    return files.reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0) / 1e6;
  }

  /** Removes all data; ends the database server. */
  async remove(): Promise<void> {
    for (const directory of this.#directories) rmSync(directory, { recursive: true });
    await this.database?.stop();
  }
}
