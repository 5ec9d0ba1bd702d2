import type { EmbeddedServer } from "../postgres/embedded-server.js";

/** A PostgreSQL server that is killed now and then, and when that was. */
export class KilledServer {
  kills = 0;
  #killedAt = 0;
  /** When it last took connections again, of `performance.now()`; infinity: it is away. */
  #backAt = 0;

  constructor(private readonly server: EmbeddedServer) {}

  /** Kills it, and starts it again after a pause in milliseconds. Resolves when it takes connections. */
  async killFor(pause: number): Promise<void> {
    this.kills++;
    this.#killedAt = performance.now();
    this.#backAt = Number.POSITIVE_INFINITY;
    await this.server.kill();
    await new Promise((resolve) => setTimeout(resolve, pause));
    await this.server.restart();
    this.#backAt = performance.now();
  }

  wasAway(since: number): boolean {
    return this.kills > 0 && since <= this.#backAt && performance.now() >= this.#killedAt;
  }
}
