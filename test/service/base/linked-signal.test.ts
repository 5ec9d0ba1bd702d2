import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { linkedSignal } from "../../../src/service/base/linked-signal.js";

describe("a linked signal", () => {
  it("aborts with whichever comes first, for its reason", () => {
    for (const at of [0, 1]) {
      const controllers = [new AbortController(), new AbortController()];
      const { signal } = linkedSignal(...controllers.map((controller) => controller.signal));
      expect(signal.aborted).toBe(false);
      controllers[at]?.abort("gone");
      expect([signal.aborted, signal.reason]).toEqual([true, "gone"]);
    }
  });

  it("is aborted from the start where one was", () => {
    const { signal } = linkedSignal(new AbortController().signal, AbortSignal.abort("before"));
    expect([signal.aborted, signal.reason]).toEqual([true, "before"]);
  });

  it("leaves nothing with a signal that lives on, once it is let go", () => {
    const long = new AbortController();
    const links = Array.from({ length: 5 }, () => linkedSignal(long.signal, new AbortController().signal));
    expect(getEventListeners(long.signal, "abort")).toHaveLength(5);
    for (const { release } of links) release();
    expect(getEventListeners(long.signal, "abort")).toHaveLength(0);
    long.abort();
    expect(links.some(({ signal }) => signal.aborted)).toBe(false);
  });
});
