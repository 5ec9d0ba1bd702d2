/*
 * Attacked: deletions that end in the middle, between memprefix's own rows and its memory source: the source fails, or the process is killed.
 * Broke: the source's copy stayed until the deletion was asked for again, and was found by the next search.
 */
import { describe, expect, it } from "vitest";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { Gate, gone } from "./owned-memories.js";
import { twoServices } from "./two-services.js";

const SECRET = "The blue safe opens with 4821";

describe("a deletion that ended in the middle", () => {
  const engine = openAiEngine();
  const services = twoServices(engine);
  const sent = () => engine.requests.map(({ raw }) => raw).join("\n");

  const paths: readonly (readonly [string, (id: string) => string])[] = [
    ["a user", () => "/users/ada"],
    ["a memory", (id) => `/users/ada/memories/${id}`],
  ];

  it.each(paths)("of %s is finished before anything else is asked of the source", async (_what, pathFor) => {
    const id = services.source.keep("ada", SECRET);
    services.source.hold = { delete: async () => gone(), deleteUser: async () => gone() };
    expect((await services.one.send("DELETE", pathFor(id))).status).toBe(502);
    expect(services.source.kept).toHaveLength(1);
    // As long as the source does not delete, it is not searched.
    expect((await services.other.chat("What opens it?")).status).toBe(200);
    expect(sent()).not.toContain(SECRET);
    services.source.hold = {};
    expect((await services.other.chat("What opens it?")).status).toBe(200);
    expect(sent()).not.toContain(SECRET);
    expect(services.source.kept).toEqual([]);
  });

  it.each(paths)("of %s is finished by the next process, unasked", async (_what, pathFor) => {
    const id = services.source.keep("ada", SECRET);
    services.source.keep("bob", "Bob has a boat");
    services.source.hold = { delete: async () => gone(), deleteUser: async () => gone() };
    expect((await services.one.send("DELETE", pathFor(id))).status).toBe(502);
    services.source.hold = {};
    await services.restart();
    expect(services.source.kept.map(({ text }) => text)).toEqual(["Bob has a boat"]);
    expect(services.faults).toEqual([]);
  });

  it("is finished by another service that comes in between, and both are told that it is", async () => {
    services.source.keep("ada", SECRET);
    const deleting = new Gate();
    services.source.hold = { deleteUser: deleting.pass };
    const first = services.one.send("DELETE", "/users/ada");
    await deleting.reached;
    expect((await services.other.chat("What opens it?")).status).toBe(200);
    expect(sent()).not.toContain(SECRET);
    expect(services.source.kept).toEqual([]);
    deleting.open();
    expect((await first).status).toBe(200);
  });
});
