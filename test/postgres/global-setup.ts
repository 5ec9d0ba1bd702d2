import type { TestProject } from "vitest/node";
import { localServer } from "../local-server.js";
import { type EmbeddedServer, startServer } from "./embedded-server.js";

declare module "vitest" {
  interface ProvidedContext {
    /** URL at which tests ask for the run's PostgreSQL server. */
    readonly postgresDesk: string;
  }
}

/** A server to test on in place of the embedded one, as its superuser: another version, say. */
const given = process.env["TEST_POSTGRES_URL"];

/**
 * One PostgreSQL server for a run, started when the first test asks for it: most runs need none. It belongs to this process, as those of
 * test files come and go.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let server: Promise<EmbeddedServer> | null = null;
  const desk = await localServer((_, response) => {
    if (given === undefined) server ??= startServer();
    (server ?? Promise.resolve({ url: given })).then(
      ({ url }) => response.end(JSON.stringify({ url })),
      (error: unknown) => response.end(JSON.stringify({ missing: String(error) })),
    );
  });
  project.provide("postgresDesk", desk.url);
  return async () => {
    await desk.close();
    await (await server?.catch(() => null))?.stop();
  };
}
