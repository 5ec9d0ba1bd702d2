/**
 * `memprefix serve` that tells its parent process, whenever asked, what it holds after a collection of garbage. To be started with
 * `--expose-gc` and a channel to the parent.
 */
import { startService } from "../../../src/cli/serve.js";
import { readSettings } from "../../../src/cli/settings.js";
import { DEFAULT_SCOPE_BOUNDS } from "../../../src/core/index.js";

/** What a service holds. */
export interface Held {
  readonly heapBytes: number;
  /** Memory of buffers. */
  readonly bufferBytes: number;
  /** What keeps the process going, by kind: sockets, timers. */
  readonly resources: Readonly<Record<string, number>>;
  readonly unhandled: readonly string[];
}

const unhandled: string[] = [];
process.on("unhandledRejection", (reason) => unhandled.push(String(reason)));
const service = await startService(readSettings(process.env), process.stderr, {
  waits: { timeoutMs: Number(process.env["UPSTREAM_TIMEOUT_MS"]) },
  // What is kept of a user by design stays the same from the first third on.
  scopeBounds: { ...DEFAULT_SCOPE_BOUNDS, maxIndexNodes: 40 },
});
const settle = () => new Promise((resolve) => setTimeout(resolve, 50));
process.on("message", async (message) => {
  if (message === "stop") {
    await service.stop();
    return process.disconnect();
  }
  for (let pass = 0; pass < 3; pass++) {
    await settle();
    // V8 holds the last text in which a pattern was found, which may be all of an answer.
    /a/.test("a");
    globalThis.gc?.();
  }
  const { heapUsed, arrayBuffers, external } = process.memoryUsage();
  const resources: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  return process.send?.({
    heapBytes: heapUsed,
    bufferBytes: Math.max(arrayBuffers, external),
    resources,
    unhandled,
  } satisfies Held);
});
process.send?.(service.address);
