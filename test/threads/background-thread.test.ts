import { once } from "node:events";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";

const BUILT = pathToFileURL(resolve(import.meta.dirname, "../../dist/threads/worker-calls.js")).href;

/** The nice value in a line of proc(5)'s `stat`, its 19th field; the second may have spaces. */
const niceOf = (stat: string) => Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
const ours = () => niceOf(readFileSync("/proc/thread-self/stat", "utf8"));

describe.skipIf(process.platform !== "linux")("a background thread", () => {
  it("lets the others go first, and changes nothing for them", async () => {
    const before = ours();
    const code = `import(${JSON.stringify(BUILT)}).then(({ stayInBackground }) => {
      stayInBackground();
      require("node:worker_threads").parentPort.postMessage(require("node:fs").readFileSync("/proc/thread-self/stat", "utf8"));
    });`;
    const [stat] = (await once(new Worker(code, { eval: true }), "message")) as [string];
    expect(niceOf(stat)).toBe(Math.max(before, 10));
    expect(ours()).toBe(before);
  });
});
