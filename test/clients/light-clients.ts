import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ProgramPlace } from "./running-program.js";

const PROGRAMS = fileURLToPath(new URL("./programs", import.meta.url));
const PROJECT = fileURLToPath(new URL("../..", import.meta.url));

/** Names of the programs whose clients are development dependencies. */
export const LIGHT_CLIENTS: readonly string[] = readdirSync(PROGRAMS)
  .filter((name) => name.endsWith(".ts"))
  .sort();

export function lightClient(name: string): ProgramPlace {
  return { file: join(PROGRAMS, name), folder: PROJECT, node: process.execPath };
}

/** A program of one of memprefix's adapters, with the development dependencies and the built package. */
export function lightAdapter(name: string): ProgramPlace {
  return { file: join(PROGRAMS, "..", "adapters", name), folder: PROJECT, node: process.execPath };
}
