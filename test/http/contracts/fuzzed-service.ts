/**
 * The service that is fuzzed, in a process of its own. Reads the settings of its
 * environment, finds what it is told, and tells its parent what went wrong in it.
 */
import { readSettings } from "../../../src/cli/settings.js";
import { answeringSource } from "../routes/answering-source.js";
import { startApp } from "../server/started-app.js";

/** What the service tells. */
export interface Told {
  readonly base: string;
  /** What handlers threw that is nobody's mistake but ours. */
  readonly faults: readonly string[];
  /** Texts that were written back. */
  readonly written: readonly string[];
}

const faults: unknown[] = [];
const source = answeringSource(JSON.parse(process.env["FOUND"] ?? "[]") as string[]);
const { FOUND: _found, ...environment } = process.env;
const app = await startApp(readSettings(environment), source, { log: [], faults });
const tell = () => {
  const written = source.added.filter(({ metadata }) => metadata?.["written_back"] === true).map(({ text }) => text);
  process.send?.({
    base: app.base,
    faults: faults.map((fault) => String((fault as Error).stack)),
    written,
  } satisfies Told);
};
process.on("message", async (message) => {
  if (message !== "stop") return tell();
  await app.close();
  return process.disconnect();
});
process.on("unhandledRejection", (reason) => faults.push(reason));
tell();
