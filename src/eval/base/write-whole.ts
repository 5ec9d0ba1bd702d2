import { renameSync, writeFileSync } from "node:fs";

/** Writes a file whole or not at all: whoever is killed meanwhile leaves what was there before. */
export function writeWhole(path: string, text: string): void {
  const draft = `${path}.part`;
  writeFileSync(draft, text);
  renameSync(draft, path);
}
