import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";

const WORKER_CALLS = new URL("../../../src/store/threads/worker-calls.ts", import.meta.url).href;

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

describe("calls of a thread", () => {
  it("keep the process until the thread has ended, also where an earlier call is answered in the meantime", () => {
    const program = `
      import { WorkerCalls } from ${JSON.stringify(WORKER_CALLS)};
      const thread = new URL("data:text/javascript," + encodeURIComponent(${JSON.stringify(THREAD)}));
      const calls = new WorkerCalls(thread, {}, () => new Error("ended"));
      const answered = calls.ask({ kind: "ask" });
      await calls.end({ kind: "end" });
      await answered;
      console.log("ended");`;
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", "tsx", "--input-type=module", "-e", program],
      { encoding: "utf8" },
    );
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "ended\n", stderr: "" });
  });
});
