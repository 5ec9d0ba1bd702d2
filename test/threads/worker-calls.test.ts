import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";

const WORKER_CALLS = new URL("../../dist/threads/worker-calls.js", import.meta.url).href;

/** A thread that answers a call after it was told to end, and ends later than that. */
const THREAD = `
  import { parentPort } from "node:worker_threads";
  let asked;
  parentPort.on("message", ({ id, kind }) => {
    if (kind === "ask") asked = id;
    else {
      parentPort.postMessage({ id: asked });
      setTimeout(() => process.exit(), 300);
    }
  });`;

/** What a program prints that calls a thread with this code, and how it ends. */
function ended(thread: string, program: string) {
  const code = `
    import { WorkerCalls } from ${JSON.stringify(WORKER_CALLS)};
    const thread = new URL("data:text/javascript," + encodeURIComponent(${JSON.stringify(thread)}));
    const calls = new WorkerCalls(thread, {}, () => new Error("ended"));
    ${program}
    console.log("ended");`;
  const args = ["--input-type=module", "-e", code];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  return { status, stdout, stderr };
}

describe("calls of a thread", () => {
  const ENDED = { status: 0, stdout: "ended\n", stderr: "" };

  it("keep the process until the thread has ended, also where an earlier call is answered in the meantime", () => {
    const program = `
      const answered = calls.ask({ kind: "ask" });
      await calls.end({ kind: "end" });
      await answered;`;
    expect(ended(THREAD, program)).toEqual(ENDED);
  });

  it("keep the process until a thread has ended that was not told to, too", () => {
    const thread = `
      import { parentPort } from "node:worker_threads";
      parentPort.on("message", ({ id }) => parentPort.postMessage({ id }));`;
    // The answer is there when the thread is stopped, and is read after that.
    const program = `
      await calls.ask({});
      const answered = calls.ask({});
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      await calls.terminate();
      await answered;`;
    expect(ended(thread, program)).toEqual(ENDED);
  });
});

/** The nice value in a line of proc(5)'s `stat`, its 19th field; the second may have spaces. */
const niceOf = (stat: string) => Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
const ours = () => niceOf(readFileSync("/proc/thread-self/stat", "utf8"));

describe.skipIf(process.platform !== "linux")("a background thread", () => {
  it("lets the others go first, and changes nothing for them", async () => {
    const before = ours();
    const code = `import(${JSON.stringify(WORKER_CALLS)}).then(({ stayInBackground }) => {
      stayInBackground();
      require("node:worker_threads").parentPort.postMessage(require("node:fs").readFileSync("/proc/thread-self/stat", "utf8"));
    });`;
    const [stat] = (await once(new Worker(code, { eval: true }), "message")) as [string];
    expect(niceOf(stat)).toBe(Math.max(before, 10));
    expect(ours()).toBe(before);
  });
});
