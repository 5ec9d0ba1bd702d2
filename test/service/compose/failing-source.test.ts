import { describe, expect, it } from "vitest";
import { MemorySourceError } from "../../../src/memory/memory-source.js";
import { composeWith, found, memories, openService, searchingSource } from "./service-fixture.js";

const KNOWN = memories({ m1: "Ana likes green tea.", m2: "Bo the dog is old.", m3: "Ana lives in Porto." });
const down = searchingSource(async () => {
  throw new MemorySourceError("test", { kind: "unreachable", cause: "ECONNREFUSED" });
});

describe("a memory source that fails", () => {
  it("does not bring back a memory that was superseded or forgotten", async () => {
    const service = openService({ source: down });
    await composeWith(service, { userId: "ana", query: "x", memories: KNOWN });
    await composeWith(service, { userId: "ana", query: "x", memories: memories({ m1: "Ana likes black tea." }) });
    await service.forgetMemory("ana" as never, "m3" as never);
    const { messages } = await composeWith(service, { userId: "ana", query: "Ana, tea, Porto?" });
    expect(messages.at(-1)?.content).toContain("black tea");
    expect(messages.at(-1)?.content).not.toContain("green tea");
    expect(messages.at(-1)?.content).not.toContain("lives in");
    await service.close();
  });
});

describe("users and their queues", () => {
  it("does not send what was forgotten while its search was under way", async () => {
    let release: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const source = searchingSource(async () => {
      await gate;
      return found({ m1: "Ana likes tea." });
    });
    const service = openService({ source });
    await composeWith(service, { userId: "ana", query: "x", memories: memories({ m1: "Ana likes tea." }) });
    const searching = composeWith(service, { userId: "ana", query: "tea?" });
    const forgetting = service.forgetMemory("ana" as never, "m1" as never);
    const later = composeWith(service, { userId: "ana", query: "tea?" });
    release();
    await Promise.all([searching, forgetting]);
    const { messages, warnings } = await later;
    expect(JSON.stringify(messages)).not.toContain("likes tea");
    expect(warnings.map(({ code }) => code)).toEqual(["memory_forgotten"]);
    await service.close();
  });

  it("finishes what was accepted before it closes", async () => {
    const source = searchingSource(async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return found({ m1: "Ana likes tea." });
    });
    const service = openService({ source });
    const accepted = composeWith(service, { userId: "ana", query: "tea?" });
    await service.close();
    expect((await accepted).blocks).toHaveLength(1);
  });
});
