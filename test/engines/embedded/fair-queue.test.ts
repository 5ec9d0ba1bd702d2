import { describe, expect, it } from "vitest";
import { FairQueue } from "../../../src/engines/embedded/fair-queue.js";

/** Asks for turns and records the order in which they come; each ends when it is told to. */
function asking(queue: FairQueue) {
  const served: string[] = [];
  const ends: (() => void)[] = [];
  return {
    served,
    ask: (name: string, signal?: AbortSignal) =>
      queue.enter(name.slice(0, 1), signal).then((end) => {
        served.push(name);
        ends.push(end);
      }),
    endOne: async () => {
      ends.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}
const limits = { running: 1, waiting: 10, waitingPerCaller: 5 };

describe("a fair queue", () => {
  it("gives as many turns at once as there are", async () => {
    const queue = new FairQueue({ ...limits, running: 2 });
    const { ask, served, endOne } = asking(queue);
    const all = ["a1", "a2", "a3"].map((name) => ask(name));
    await Promise.all(all.slice(0, 2));
    expect([served, queue.length]).toEqual([["a1", "a2"], 1]);
    await endOne();
    expect([served, queue.length]).toEqual([["a1", "a2", "a3"], 0]);
  });

  it("serves callers in turn, and each caller's requests in their order", async () => {
    const { ask, served, endOne } = asking(new FairQueue(limits));
    const all = ["a1", "a2", "a3", "a4", "b1", "b2", "c1"].map((name) => ask(name));
    for (const _ of all) await endOne();
    await Promise.all(all);
    expect(served).toEqual(["a1", "a2", "b1", "c1", "a3", "b2", "a4"]);
  });

  it("refuses what is too much, of one caller and of all", async () => {
    const queue = new FairQueue({ running: 1, waiting: 3, waitingPerCaller: 2 });
    const { ask, endOne } = asking(queue);
    const all = ["a1", "a2", "a3"].map((name) => ask(name));
    await expect(ask("a4")).rejects.toMatchObject({ code: "queue_full", whose: "caller", waiting: 2 });
    all.push(ask("b1"));
    await expect(ask("c1")).rejects.toMatchObject({ code: "queue_full", whose: "all", waiting: 3 });
    for (const _ of all) await endOne();
    await Promise.all(all);
  });

  it("lets go of who does not wait any longer", async () => {
    const queue = new FairQueue(limits);
    const { ask, served, endOne } = asking(queue);
    const leaving = new AbortController();
    const [first, left, last] = [ask("a1"), ask("b1", leaving.signal), ask("c1")];
    await first;
    leaving.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    expect(queue.length).toBe(1);
    await endOne();
    await last;
    expect(served).toEqual(["a1", "c1"]);
    await expect(ask("d1", leaving.signal)).rejects.toThrow("gone");
  });

  it("does not mind a turn that is ended twice", async () => {
    const queue = new FairQueue(limits);
    const end = await queue.enter("a");
    end();
    end();
    await queue.enter("a");
    const waiting = queue.enter("b");
    expect(queue.length).toBe(1);
    void waiting;
  });
});
