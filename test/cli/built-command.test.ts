import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { VERSION } from "../../src/cli/version.js";
import { MAIN } from "./launch.js";

it("`npx memstem` runs in a clone that was built: its file may be executed", async () => {
  const { stdout } = await promisify(execFile)(MAIN, ["--version"]);
  expect(stdout).toBe(`${VERSION}\n`);
});
