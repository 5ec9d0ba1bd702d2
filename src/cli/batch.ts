import { once } from "node:events";
import { createReadStream, createWriteStream, statSync } from "node:fs";
import { Readable, type Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { z } from "zod";
import type { BatchPlanner } from "../core/index.js";
import { writeBatchEvent } from "../http/contracts/batch-contract.js";
import { HTTP_LIMITS } from "../http/guards/limits.js";
import { batchLines } from "../http/routes/batch-route.js";
import { type BatchProgress, composeBatch } from "../service/batch/batch.js";
import * as field from "../service/fields/fields.js";
import { readOptions } from "../service/fields/fields.js";
import { assemble } from "./assemble.js";
import type { Invocation } from "./invocation.js";
import { withProgress } from "./progress-bar.js";
import { readSettings, UsageError } from "./settings.js";

export interface BatchOptions {
  readonly out?: string;
  readonly window: number;
  /** Separated by commas. */
  readonly workers?: string;
  readonly planner?: BatchPlanner;
  readonly warmStart?: boolean;
}

const named = z.object({ workers: field.workers.nullable().default(null) });

/**
 * Composes a file's requests and writes the answers in the order of execution. An invalid request is an error on its own line. Rejects where a
 * file cannot be read or written; earlier answers are stored.
 */
export async function runBatch(
  file: string,
  { out, window, workers, planner, warmStart }: BatchOptions,
  { env, stdout, stderr }: Pick<Invocation, "env" | "stdout" | "stderr">,
): Promise<BatchProgress> {
  const settings = readSettings(env);
  const names = readOptions(named, { workers: workers?.split(",") }).workers;
  const total = await countLines(file);
  if (out !== undefined && isSameFile(file, out))
    throw new UsageError([{ field: "--out", message: "is the file of the requests" }]);
  const memprefix = assemble(settings);
  try {
    const output: Writable = out === undefined ? stdout : await opened(out);
    return await withProgress(stderr, "composing", total, async (step) => {
      let end: BatchProgress = { read: 0, found: 0, composed: 0, failed: 0 };
      const inputs = batchLines(streamOf(file), {
        maxBytes: HTTP_LIMITS.maxBodyBytes,
        maxRequests: Number.POSITIVE_INFINITY,
      });
      const { signal } = new AbortController();
      const options = { window, workers: names, planner, warmStart, signal };
      for await (const event of composeBatch(memprefix.batches, inputs, options)) {
        if (event.kind === "progress") continue;
        if (event.kind === "end") end = event;
        else {
          step();
          await written(output, `${JSON.stringify(writeBatchEvent(event))}\n`);
        }
      }
      if (out !== undefined) await finished(output.end());
      return end;
    });
  } finally {
    await memprefix.close();
  }
}

function streamOf(file: string): ReadableStream<Uint8Array> {
  return Readable.toWeb(createReadStream(file)) as ReadableStream<Uint8Array>;
}

/** Opens and truncates the file before anything is composed. */
async function opened(out: string): Promise<Writable> {
  const output = createWriteStream(out);
  // An error between two writes would end the process; `written` reports it.
  output.on("error", () => {});
  await once(output, "open");
  return output;
}

/** Writes a line, and waits while the buffer is full. Rejects also with an earlier line's error. */
async function written(output: Writable, line: string): Promise<void> {
  // A stream that failed never drains.
  if (output.errored !== null) throw output.errored;
  if (!output.write(line)) await once(output, "drain");
}

/** Whether two paths lead to the same file: opening it for writing would erase the input. */
function isSameFile(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return a?.isFile() === true && b?.isFile() === true && a.dev === b.dev && a.ino === b.ino;
}

async function countLines(file: string): Promise<number> {
  let lines = 0;
  let last = 0x0a;
  for await (const chunk of createReadStream(file)) {
    for (const byte of chunk as Buffer) if (byte === 0x0a) lines++;
    last = (chunk as Buffer).at(-1) ?? last;
  }
  return last === 0x0a ? lines : lines + 1;
}
