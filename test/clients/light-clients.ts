import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ProgramPlace } from "./running-program.js";

const PROGRAMS = fileURLToPath(new URL("./programs", import.meta.url));
const PROJECT = fileURLToPath(new URL("../..", import.meta.url));

/** Names of the programs whose clients are development dependencies. */
export const LIGHT_CLIENTS: readonly string[] = ["anthropic.ts", "openai-chat.ts", "openai-responses.ts"];

export function lightClient(name: string): ProgramPlace {
  return { file: join(PROGRAMS, name), folder: PROJECT, node: process.execPath };
}
