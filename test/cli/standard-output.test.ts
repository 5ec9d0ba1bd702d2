import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { launch } from "./launch.js";

const env = { PATH: process.env["PATH"] ?? "" };
const hasFull = existsSync("/dev/full");

describe("standard output that takes no more", () => {
  it.each([[["--version"]], [["serve", "--help"]]])(
    "ends memprefix %j without a word where its reader has gone",
    async (args) => {
      const { child, ended } = launch(args, env);
      child.stdout.destroy();
      expect(await ended).toMatchObject({ code: 141, stderr: "" });
    },
  );

  it.skipIf(!hasFull)(
    `is said in a line where there is no room${hasFull ? "" : " (skipped: there is no /dev/full)"}`,
    async () => {
      const { ended } = launch(["--version"], env, { through: ["sh", "-c", 'exec "$@" > /dev/full', "sh"] });
      const { code, stderr } = await ended;
      expect(code).toBe(1);
      expect(stderr).toMatch(/^memprefix: standard output: ENOSPC: .*\n$/);
    },
  );
});
