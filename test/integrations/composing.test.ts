import { describe, expect, it, vi } from "vitest";
import { type AdapterOptions, type Composing, composeCall } from "../../src/integrations/composing.js";

const down: Composing = {
  compose: () => Promise.reject(new Error("down")),
  feedback: () => Promise.reject(new Error("down")),
};
const asked = [{ role: "user", content: "Where?" }] as const;

describe("a call of an adapter", () => {
  it("goes on unmodified where memprefix fails, and where the listener of failures fails too", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const told: unknown[] = [];
    const options: AdapterOptions<null> = { memprefix: down, userId: "ana", onError: (error) => told.push(error) };
    expect(await composeCall(options, null, asked)).toBeNull();
    expect(told).toEqual([new Error("down")]);
    expect(warn).not.toHaveBeenCalled();
    const onError = () => {
      throw new Error("no log");
    };
    expect(await composeCall({ ...options, onError }, null, asked)).toBeNull();
    expect(warn).toHaveBeenCalledOnce();
  });

  it("goes on unmodified where a name, the memories or the messages cannot be had", async () => {
    const told: unknown[] = [];
    const base: AdapterOptions<null> = { memprefix: down, userId: "ana", onError: (error) => told.push(error) };
    const fails = () => {
      throw new Error("none");
    };
    for (const options of [{ userId: fails }, { agentId: fails }, { conversationId: fails }, { memories: fails }])
      expect(await composeCall({ ...base, ...options }, null, asked)).toBeNull();
    expect(await composeCall(base, null, fails)).toBeNull();
    expect(told).toHaveLength(5);
  });

  it("is not composed where nobody is named, and says nothing of it", async () => {
    const onError = vi.fn();
    expect(await composeCall({ memprefix: down, userId: () => undefined, onError }, null, asked)).toBeNull();
    expect(onError).not.toHaveBeenCalled();
  });
});
