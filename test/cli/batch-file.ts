import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { batchLine } from "../../src/http/contracts/batch-contract.js";

/** Writes a file of requests, one on each line, into a folder; gives its path. */
export function requestsIn(folder: string, ...lines: readonly string[]): string {
  const file = join(folder, "requests.jsonl");
  writeFileSync(file, lines.join("\n"));
  return file;
}

/** The answers that `memprefix batch` wrote, one on each line. */
export function answersIn(text: string): readonly z.output<typeof batchLine>[] {
  return text
    .trim()
    .split("\n")
    .map((line) => batchLine.parse(JSON.parse(line)));
}
