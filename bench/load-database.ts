import pg from "pg";
import { type EmbeddedServer, startServer } from "../test/postgres/embedded-server.js";
import { cpuMsOf, familyOf, WrittenSoFar } from "./process-figures.js";

/** A PostgreSQL server of the bench's own, as durable as its defaults, with what its processes used. */
export class LoadDatabase {
  readonly #written = new WrittenSoFar();

  private constructor(
    private readonly server: EmbeddedServer,
    private readonly pid: number,
  ) {}

  /** @param flags of the server, `-c` and a setting each */
  static async start(flags: readonly string[]): Promise<LoadDatabase> {
    const server = await startServer(flags);
    return new LoadDatabase(server, await server.processId());
  }

  get url(): string {
    return this.server.url;
  }

  /** Of all its processes. */
  get cpuMs(): number {
    return cpuMsOf(familyOf(this.pid));
  }

  get writtenBytes(): number {
    return this.#written.read(familyOf(this.pid));
  }

  /** Of the database, without its log. */
  async megabytes(): Promise<number> {
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    try {
      const { rows } = await client.query<{ size: string }>("select pg_database_size(current_database()) as size");
      return Number(rows[0]?.size) / 1e6;
    } finally {
      await client.end();
    }
  }

  stop(): Promise<void> {
    return this.server.stop();
  }
}
