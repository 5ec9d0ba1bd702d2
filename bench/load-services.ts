import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ListeningChild, listeningChild } from "./child-process.js";

const MAIN = process.env["MAIN"] ?? fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
/** Node's flags; by default those of `npm start`. */
const FLAGS = (process.env["NODE_FLAGS"] ?? "--max-semi-space-size=64").split(" ").filter(Boolean);

/** Services, each a process with a data directory of its own, among which users are shared out. */
export class LoadServices {
  readonly #directories: readonly string[];
  #children: readonly ListeningChild[] = [];

  constructor(count: number) {
    this.#directories = Array.from({ length: count }, () => mkdtempSync(join(tmpdir(), "memstem-load-")));
  }

  /** Starts all of them. Gives the milliseconds until the last one was ready. */
  async start(): Promise<number> {
    const started = performance.now();
    this.#children = await Promise.all(
      this.#directories.map((directory) =>
        listeningChild([...FLAGS, MAIN, "serve"], {
          MEMSTEM_PORT: "0",
          MEMSTEM_SOURCE: "none",
          MEMSTEM_LOG_LEVEL: "silent",
          MEMSTEM_DATA_DIR: directory,
        }),
      ),
    );
    return performance.now() - started;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop()));
  }

  remove(): void {
    for (const directory of this.#directories) rmSync(directory, { recursive: true });
  }

  get ports(): readonly number[] {
    return this.#children.map(({ address }) => Number(new URL(address).port));
  }

  /** Resident memory of all of them. */
  get rssMiB(): number {
    return this.#sum(({ child }) => {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
    });
  }

  /** Of all their threads. */
  get cpuMs(): number {
    return this.#sum(({ child }) => {
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8")
        .replace(/^.*\) /, "")
        .split(" ");
      return (Number(fields[11]) + Number(fields[12])) * 10;
    });
  }

  /** Of all their databases, logs included. */
  get databaseMB(): number {
    const files = this.#directories.flatMap((directory) =>
      ["", "-wal"].map((suffix) => join(directory, `memstem.db${suffix}`)),
    );
    return files.reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0) / 1e6;
  }

  #sum(of: (child: ListeningChild) => number): number {
    return this.#children.reduce((sum, child) => sum + of(child), 0);
  }
}
