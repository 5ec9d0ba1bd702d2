import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "./launch.js";

/** A command that runs, takes signals `S`, and ends with `E`. */
export interface Begun<E, S = "SIGINT" | "SIGTERM"> {
  kill(signal: S): void;
  /** Resolves with what the pattern's group matched, once standard output has it. */
  printed(pattern: RegExp): Promise<string>;
  readonly stderr: string;
  readonly ended: Promise<E>;
}

/** A service that listens. */
export interface Listening<E, S = "SIGINT" | "SIGTERM"> extends Begun<E, S> {
  readonly address: string;
}

/** Runs `memprefix` with directories of its own; what still runs after a test is ended, and the directories go. */
export interface Commands<E, S = "SIGINT" | "SIGTERM"> {
  /** Holds nothing but what a test puts there. */
  readonly root: string;
  readonly dataDir: string;
  /** Names of what commands left in the home directory and among temporary files. */
  readonly leftBehind: readonly string[];
  run(args: readonly string[], options?: { readonly input?: string; readonly environment?: Environment }): Promise<E>;
  /** Starts a command, to be stopped before it ends. */
  begin(args: readonly string[], environment?: Environment): Begun<E, S>;
  /** Starts `memprefix serve`, on a free port unless told otherwise; resolves when it listens. */
  serve(environment?: Environment): Promise<Listening<E, S>>;
}

/** What `serve` starts with unless told otherwise. */
export const SERVES: Environment = { MEMPREFIX_PORT: "0", MEMPREFIX_SOURCE: "none" };

/** A data, a home and a temporary directory that commands of one test have to themselves. */
export class OwnDirectories {
  #root = "";

  make(): void {
    this.#root = mkdtempSync(join(tmpdir(), "memprefix-cli-"));
    for (const directory of [this.home, this.temporary]) mkdirSync(directory);
  }

  remove(): void {
    rmSync(this.#root, { recursive: true });
  }

  get root(): string {
    return this.#root;
  }

  get dataDir(): string {
    return join(this.#root, "data");
  }

  get home(): string {
    return join(this.#root, "home");
  }

  get temporary(): string {
    return join(this.#root, "tmp");
  }

  get leftBehind(): readonly string[] {
    return [this.home, this.temporary].flatMap((directory) => readdirSync(directory));
  }

  /** The variables that name them. */
  get environment(): Environment {
    const { home: HOME, temporary: TMPDIR, dataDir: MEMPREFIX_DATA_DIR } = this;
    return { PATH: process.env["PATH"] ?? "", HOME, TMPDIR, MEMPREFIX_DATA_DIR };
  }
}
