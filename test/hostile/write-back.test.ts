/*
 * Attacked: exchanges that are kept as memories, with a deletion while the engine answers: of the user or of a memory, at this service or
 * another, streamed and not. Broke: the exchange was added after the deletion, and the next prompt had it.
 */
import { describe, expect, it } from "vitest";
import { openAiEngine, sendEvents, sendJson, streamedAnswer, wholeAnswer } from "../http/routes/openai-engine.js";
import { Gate } from "./owned-memories.js";
import { type Service, twoServices } from "./two-services.js";

const SECRET = "The blue safe opens with 4821";

describe.each([{ stream: false }, { stream: true }])("an exchange under way (streamed: $stream)", ({ stream }) => {
  const engine = openAiEngine();
  const services = twoServices(engine, { MEMPREFIX_WRITE_BACK: "on" });

  /** A chat whose answer tells the secret, with something done while the engine is at it. */
  async function chatDuring(meanwhile: () => Promise<unknown>): Promise<void> {
    const computing = new Gate();
    engine.behave(async ({ body }, response, usage) => {
      await computing.pass();
      if (body.stream) sendEvents(response, streamedAnswer(SECRET, usage));
      else sendJson(response, 200, wholeAnswer(SECRET, usage));
    });
    const chat = services.one.chat("What opens it?", { stream });
    await computing.reached;
    await meanwhile();
    computing.open();
    expect((await chat).text).toContain(stream ? "4821" : SECRET);
    // What was to be added is behind this in the user's queue, or before it.
    await services.one.send("POST", "/memories", { user_id: "ada", memories: ["Ada came back"] });
  }
  const keptTexts = () => services.source.kept.map(({ text }) => text);
  const deletions: readonly { readonly what: string; readonly pathFor: (id: string) => string }[] = [
    { what: "the user", pathFor: () => "/users/ada" },
    { what: "a memory", pathFor: (id) => `/users/ada/memories/${id}` },
  ];
  const places: readonly { readonly where: string; readonly service: () => Service }[] = [
    { where: "this service", service: () => services.one },
    { where: "another service", service: () => services.other },
  ];

  it.each(deletions.flatMap((deletion) => places.map((at) => ({ ...deletion, ...at }))))(
    "is not kept where $what was deleted meanwhile (at $where)",
    async ({ pathFor, service }) => {
      const id = services.source.keep("ada", SECRET);
      await chatDuring(async () => {
        expect((await service().send("DELETE", pathFor(id))).status).toBe(200);
      });
      expect(keptTexts()).toEqual(["Ada came back"]);
      engine.requests.length = 0;
      await services.other.chat("What opens it?");
      expect(engine.requests.map(({ raw }) => raw).join("\n")).not.toContain("4821");
    },
  );

  it("is kept where another user was deleted meanwhile", async () => {
    services.source.keep("ada", SECRET);
    await chatDuring(() => services.other.send("DELETE", "/users/bob"));
    expect(keptTexts()).toEqual([SECRET, `User: What opens it?\nAssistant: ${SECRET}`, "Ada came back"]);
  });

  it("is taken back where another service deletes the user while it is being added", async () => {
    const add = new Gate();
    services.source.hold = { add: add.pass };
    const chat = services.one.chat("What opens it?", { stream });
    await add.reached;
    services.source.hold = {};
    expect((await services.other.send("DELETE", "/users/ada")).status).toBe(200);
    services.source.keep("ada", "kept later");
    add.open();
    await chat;
    await services.one.send("POST", "/memories", { user_id: "ada", memories: ["Ada came back"] });
    expect(keptTexts()).toEqual(["kept later", "Ada came back"]);
  });

  it("has no prompt of its user's wait until it is added", async () => {
    services.source.keep("ada", SECRET);
    const add = new Gate();
    services.source.hold = { add: add.pass };
    await services.one.chat("What opens it?", { stream });
    await add.reached;
    engine.requests.length = 0;
    const next = await services.one.chat("And what opens the door?", { stream, memprefix: { write_back: false } });
    expect(next.status).toBe(200);
    expect(engine.requests.map(({ raw }) => raw).join("\n")).toContain("4821");
    add.open();
    await services.one.send("POST", "/memories", { user_id: "ada", memories: ["Ada came back"] });
    expect(keptTexts().at(-1)).toBe("Ada came back");
    expect(keptTexts()).toHaveLength(3);
  });

  it("is gone when a deletion of its user that came while it was added is answered", async () => {
    const add = new Gate();
    const deleting = new Gate();
    deleting.open();
    services.source.hold = { add: add.pass, deleteUser: deleting.pass };
    await services.one.chat("What opens it?", { stream });
    await add.reached;
    const deletion = services.one.send("DELETE", "/users/ada");
    await deleting.reached;
    add.open();
    expect((await deletion).status).toBe(200);
    expect(keptTexts()).toEqual([]);
  });
});
