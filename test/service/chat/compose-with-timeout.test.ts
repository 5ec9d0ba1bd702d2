import { describe, expect, it } from "vitest";
import type { RequestId } from "../../../src/core/index.js";
import type { ComposeAnswer } from "../../../src/service/base/call-types.js";
import {
  AbandonedRequestError,
  BusyUserError,
  InvalidRequestError,
  StoreUnavailableError,
} from "../../../src/service/base/errors.js";
import { composeWithTimeout } from "../../../src/service/chat/compose-with-timeout.js";
import { composeWith, openService } from "../compose/service-fixture.js";

const nobodyLeaves = new AbortController().signal;

/** Composes with everything that is told on the way. */
function watched(timeoutMs: number) {
  const faults: unknown[] = [];
  const late: RequestId[] = [];
  const parts = {
    timeoutMs,
    onFault: (error: unknown) => void faults.push(error),
    onLate: ({ requestId }: ComposeAnswer) => void late.push(requestId),
  };
  return { faults, late, parts };
}

async function anAnswer(): Promise<ComposeAnswer> {
  const service = openService();
  const answer = await composeWith(service, { userId: "ana", query: "Tea?", memories: [] });
  await service.close();
  return answer;
}

describe("composing for a chat", () => {
  it("that takes too long is given up; a prompt that comes all the same is told, and so is a fault", async () => {
    const answer = await anAnswer();
    const { faults, late, parts } = watched(1);
    let stop: AbortSignal | undefined;
    let end = (_answer: ComposeAnswer) => {};
    let fail = (_error: unknown) => {};
    const slow = (signal: AbortSignal) => {
      stop = signal;
      return new Promise<ComposeAnswer>((resolve, reject) => {
        end = resolve;
        fail = reject;
      });
    };
    expect(await composeWithTimeout(slow, nobodyLeaves, parts)).toEqual({ composed: null, notComposed: "timeout" });
    expect(stop?.aborted).toBe(true);
    end(answer);
    await expect.poll(() => late).toEqual([answer.requestId]);
    for (const error of [new AbandonedRequestError(), new TypeError("ours")]) {
      await composeWithTimeout(slow, nobodyLeaves, parts);
      fail(error);
    }
    await expect.poll(() => faults).toEqual([new TypeError("ours")]);
  });

  it("goes on while this process is busy with requests, and not for ever", async () => {
    const answer = await anAnswer();
    const busyFor = async (ms: number) => {
      const end = performance.now() + ms;
      while (performance.now() < end) {
        const pause = performance.now() + 10;
        while (performance.now() < pause);
        await new Promise(setImmediate);
      }
      return answer;
    };
    const { parts } = watched(60);
    expect(await composeWithTimeout(() => busyFor(180), nobodyLeaves, parts)).toMatchObject({ notComposed: null });
    expect(await composeWithTimeout(() => busyFor(1_000), nobodyLeaves, parts)).toMatchObject({
      notComposed: "timeout",
    });
  });

  it("for a caller who has gone is nothing more", async () => {
    const { parts } = watched(1);
    const gone = AbortSignal.abort();
    await expect(composeWithTimeout(() => new Promise<ComposeAnswer>(() => {}), gone, parts)).rejects.toThrow(
      AbandonedRequestError,
    );
  });

  it.each([
    [new StoreUnavailableError("full"), "store_full", 1],
    [new StoreUnavailableError("read-only"), "store_read_only", 1],
    [new StoreUnavailableError("failing"), "store_failing", 1],
    [new StoreUnavailableError("damaged"), "store_damaged", 1],
    [new StoreUnavailableError("unreachable"), "store_unreachable", 1],
    [new StoreUnavailableError("busy"), "store_busy", 0],
    [new BusyUserError(256), "user_queue", 0],
    [new TypeError("ours"), "fault", 1],
    ["not even an error", "fault", 1],
  ])("that fails with %s is no reason to fail: %s", async (error, notComposed, told) => {
    const { faults, parts } = watched(60_000);
    const failing = () => Promise.reject(error);
    expect(await composeWithTimeout(failing, nobodyLeaves, parts)).toEqual({ composed: null, notComposed });
    expect(faults).toEqual(told === 1 ? [error] : []);
  });

  it("fails with what the request did wrong", async () => {
    const { faults, parts } = watched(60_000);
    const wrong = new InvalidRequestError([{ field: "top_k", message: "is too small" }]);
    await expect(composeWithTimeout(() => Promise.reject(wrong), nobodyLeaves, parts)).rejects.toBe(wrong);
    expect(faults).toEqual([]);
  });
});
