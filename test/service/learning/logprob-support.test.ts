import { describe, expect, it } from "vitest";
import { LogprobSupport } from "../../../src/service/chat/adaptive-depth.js";

describe("what is known of an engine's log probabilities", () => {
  const watched = () => {
    const time = { now: 0 };
    return { time, support: new LogprobSupport(() => time.now) };
  };

  it("is that it may give many, until it refuses; then few; then none for ten minutes", () => {
    const { time, support } = watched();
    expect(support.topFor("m")).toBe(20);
    expect(support.refused("m")).toBe(false);
    expect(support.topFor("m")).toBe(5);
    expect(support.refused("m")).toBe(true);
    expect(support.topFor("m")).toBeNull();
    expect(support.topFor("n")).toBe(20);
    time.now = 10 * 60_000 - 1;
    expect(support.topFor("m")).toBeNull();
    time.now += 1;
    expect(support.topFor("m")).toBe(20);
  });

  it("is of 256 models at most, as clients name them as they like", () => {
    const { support } = watched();
    support.off("first");
    for (let at = 0; at < 255; at++) support.off(`m${at}`);
    expect(support.topFor("m254")).toBeNull();
    support.off("one more");
    expect(support.topFor("first")).toBe(20);
    expect(support.topFor("m0")).toBeNull();
  });
});
