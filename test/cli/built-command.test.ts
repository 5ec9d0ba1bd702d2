import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { VERSION } from "../../src/cli/version.js";

const built = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

it("`npx memstem` runs in a clone that was built: its file may be executed", async () => {
  const { stdout } = await promisify(execFile)(built, ["--version"]);
  expect(stdout).toBe(`${VERSION}\n`);
});
