import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { clientConfig, SCHEMA } from "./connections.js";

/** Tables whose rows may have held a user's text or name. */
const TABLES = [
  "journal",
  "snapshots",
  "instructions",
  "responses",
  "known_memories",
  "scopes",
  "forgotten_memories",
  "source_deletions",
  "usage_prompts",
];

/** Milliseconds between two vacuums of one process: erasures that come together share one. */
const PAUSE_MS = 1_000;

/**
 * Vacuums after erasures, so that the space of erased rows can be used again, and is. Nothing waits for it, and a failure is the next one's
 * to make good. What a server keeps besides (free space of pages, its log, replicas, archives) is not in a client's hands.
 */
export class BackgroundVacuum {
  #isDue = false;
  #running: Promise<void> | null = null;
  readonly #closing = new AbortController();

  constructor(private readonly url: string) {}

  /** Text was erased. */
  request(): void {
    this.#isDue = true;
    if (this.#closing.signal.aborted) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  }

  /** Resolves when nothing that was requested is left to do, or the server failed. */
  async done(): Promise<void> {
    await this.#running;
  }

  /** Ends without waiting for what is due: the server's own vacuum does the rest. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#isDue && !this.#closing.signal.aborted) {
      this.#isDue = false;
      await this.#vacuum().catch(() => {});
      if (!this.#isDue) return;
      await setTimeout(PAUSE_MS, null, { signal: this.#closing.signal }).catch(() => {});
    }
  }

  async #vacuum(): Promise<void> {
    const client = new pg.Client(clientConfig(this.url));
    // A lost connection ends the statement, too.
    client.on("error", () => {});
    let ended: Promise<void> | null = null;
    const end = () => {
      ended ??= client.end();
    };
    try {
      // Bounded by itself; ended while it connects, the driver's client may never say that it has.
      await client.connect();
      this.#closing.signal.addEventListener("abort", end);
      for (const table of TABLES) {
        if (this.#closing.signal.aborted) return;
        // Another instance that is at it does this one's work, too.
        await client.query(`vacuum (skip_locked) ${SCHEMA}.${table}`);
      }
    } finally {
      this.#closing.signal.removeEventListener("abort", end);
      end();
      await ended;
    }
  }
}
