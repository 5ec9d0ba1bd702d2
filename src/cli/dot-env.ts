import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import type { Environment } from "./invocation.js";

/** Variables in a directory's `.env`; none without that file. */
export function readDotEnv(directory: string): Environment {
  try {
    return parseEnv(readFileSync(`${directory}/.env`, "utf8")) as Environment;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return {};
    throw error;
  }
}
