/**
 * `npm run bench -- NAME [SETTING=VALUE…] [--data FOLDER …]`: runs a program of `benches.ts`, with these settings in its environment. It
 * builds first where the program runs `dist/`. Without a name it lists the programs.
 */
import { spawnSync } from "node:child_process";
import { EvaluationError } from "../src/eval/base/run-files.js";
import { BENCHES, OF_THE_BUILD } from "./benches.js";

const SETTING = /^([A-Z][A-Z0-9_]*)=(.*)$/s;

const [name = "", ...given] = process.argv.slice(2);
if (Object.hasOwn(BENCHES, name)) {
  for (const word of given) {
    const [, key, value] = SETTING.exec(word) ?? [];
    if (key !== undefined) process.env[key] = value;
  }
  if (OF_THE_BUILD.has(name)) {
    const { status } = spawnSync("npm", ["run", "--silent", "build"], { stdio: "inherit" });
    if (status !== 0) process.exit(status ?? 1);
  }
  // The program reads its own arguments.
  process.argv.splice(2, given.length + 1, ...given.filter((word) => !SETTING.test(word)));
  await import(`./${name}.js`).catch(endForUsage);
} else {
  const width = Math.max(...Object.keys(BENCHES).map((bench) => bench.length));
  for (const [bench, says] of Object.entries(BENCHES)) console.log(`${bench.padEnd(width)}  ${says}`);
  if (name !== "") {
    console.error(`\nThere is no bench "${name}".`);
    process.exitCode = 2;
  }
}

/** What the program was given is wrong: says so, without where it was found. */
function endForUsage(error: unknown): never {
  if (!(error instanceof EvaluationError)) throw error;
  console.error(error.message);
  process.exit(2);
}
