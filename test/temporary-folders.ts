import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** Makes empty folders, each time another, which are removed after the tests of the file or suite that calls this. */
export function temporaryFolders(): () => string {
  const folders: string[] = [];
  afterAll(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  return () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "memprefix-test-")));
    folders.push(folder);
    return folder;
  };
}

/** One of the {@link temporaryFolders}. */
export function temporaryFolder(): string {
  return temporaryFolders()();
}
