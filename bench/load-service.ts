import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ListeningChild, listeningChild } from "./child-process.js";

const DIST = fileURLToPath(new URL("../dist", import.meta.url));
/** Node's flags; by default those of `npm start`. */
const FLAGS = (process.env["NODE_FLAGS"] ?? "--max-semi-space-size=64").split(" ").filter(Boolean);
/** Linux counts processor time in hundredths of a second. */
const TICK_MS = 10;

/** The built service in a process of its own, with a data directory of its own. Figures are Linux's, from `/proc`. */
export class LoadService {
  readonly #directory = mkdtempSync(join(tmpdir(), "memprefix-load-"));
  #running: ListeningChild | null = null;

  /** @param dist a build's folder */
  constructor(private readonly dist = DIST) {}

  /** Returns the milliseconds until it was ready. */
  async start(): Promise<number> {
    const started = performance.now();
    this.#running = await listeningChild([...FLAGS, join(this.dist, "cli/main.js"), "serve"], {
      MEMPREFIX_PORT: "0",
      MEMPREFIX_SOURCE: "none",
      MEMPREFIX_LOG_LEVEL: "silent",
      MEMPREFIX_DATA_DIR: this.#directory,
    });
    return performance.now() - started;
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
  }

  get port(): number {
    return Number(new URL(this.#running?.address ?? "").port);
  }

  get rssMiB(): number {
    return Number(/VmRSS:\s+(\d+)/.exec(this.#said("status"))?.[1]) / 1_024;
  }

  /** Of all its threads. */
  get cpuMs(): number {
    // The process's name, in brackets, may contain any character.
    const fields = this.#said("stat")
      .replace(/^.*\) /s, "")
      .split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  }

  /** To files and sockets. Not `write_bytes`, which counts a large folio whole whenever a part of it becomes dirty. */
  get writtenBytes(): number {
    return Number(/^wchar: (\d+)$/m.exec(this.#said("io"))?.[1]);
  }

  /** The event loop's delay since the last call, at p99. */
  async delayMs(): Promise<number> {
    const metrics = await (await fetch(`http://127.0.0.1:${this.port}/metrics`)).text();
    return Number(/^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(metrics)?.[1]) * 1_000;
  }

  /** SQLite's log included. */
  get databaseMB(): number {
    const files = ["memprefix.db", "memprefix.db-wal"].map((name) => join(this.#directory, name));
    return files.reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0) / 1e6;
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true });
  }

  #said(file: "io" | "stat" | "status"): string {
    return readFileSync(`/proc/${this.#running?.child.pid}/${file}`, "utf8");
  }
}
