import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Makes a directory and what is missing above it. Throws what `mkdir` throws. Node's own `recursive` never comes back where a file system
 * takes no directories and says `ENOENT` for it, as /proc does: it takes the parent for missing, finds it there, and tries again.
 */
export function makeDirectory(path: string): void {
  const missing = [resolve(path)];
  for (let above = dirname(resolve(path)); !existsSync(above); above = dirname(above)) missing.push(above);
  for (const directory of missing.reverse()) makeOne(directory);
}

function makeOne(directory: string): void {
  try {
    mkdirSync(directory);
  } catch (error) {
    // It was there, or another process was faster.
    if (!existsSync(directory) || !statSync(directory).isDirectory()) throw error;
  }
}
