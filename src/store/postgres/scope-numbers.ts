import { ask, type Connections } from "./connections.js";
import { SCHEMA } from "./schema.js";

/** Numbers that are reserved at once, … */
const AT_ONCE = 64;
/** … when so few are left. */
const FEW = 16;
/** Milliseconds until numbers are asked for again, where they were refused: a user may write a table, and not use its sequence. */
const AGAIN_MS = 60_000;

const NEXT = {
  text: `select nextval(pg_get_serial_sequence('${SCHEMA}.scopes', 'scope_id')) as number from generate_series(1, ${AT_ONCE})`,
};

/** Numbers of scopes that do not exist yet. One that is never used is lost, as a sequence's are. */
export class ScopeNumbers {
  #reserved: number[] = [];
  #isAsking = false;
  #notBefore = 0;

  constructor(private readonly connections: Pick<Connections, "change">) {}

  /** Null: none is at hand. */
  take(): number | null {
    if (this.#reserved.length <= FEW && !this.#isAsking && performance.now() >= this.#notBefore) void this.#reserve();
    return this.#reserved.pop() ?? null;
  }

  /** Numbers that may not be free are not used: of a database that went back to an earlier state. */
  drop(): void {
    this.#reserved = [];
  }

  /** Never rejects. */
  async #reserve(): Promise<void> {
    this.#isAsking = true;
    try {
      const rows = await this.connections.change((client) => ask<{ number: number }>(client, NEXT));
      // The lowest is taken first.
      this.#reserved = [...rows.map(({ number }) => number).reverse(), ...this.#reserved];
    } catch {
      this.#notBefore = performance.now() + AGAIN_MS;
    }
    this.#isAsking = false;
  }
}
