import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Makes a directory and its missing parents. Throws what `mkdir` throws. Node's own `recursive` loops forever on a file system that answers
 * `ENOENT` to every new directory, as /proc does: it takes the parent for missing, finds it, and retries.
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
    // It exists, or another process made it first.
    if (!existsSync(directory) || !statSync(directory).isDirectory()) throw error;
  }
}
