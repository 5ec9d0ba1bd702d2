/*
 * Attacked: deletions of a user or a memory while something else is under way: at this service or another one on the same database, where the
 * source fails, or where the process is killed between memprefix's own rows and the source. Broke: a user came back by a search, a batch or an
 * addition that was under way; an exchange was added after the deletion, and the next prompt had it; the source's copy stayed until the
 * deletion was asked for again. `test/service/scopes/two-services.test.ts` has what one service composes after the other forgot.
 */
import { describe, expect, it } from "vitest";
import { Gate } from "../gate.js";
import { openAiEngine, sendEvents, sendJson, streamedAnswer, wholeAnswer } from "../http/routes/openai-engine.js";
import { gone } from "./owned-memories.js";
import { twoServices } from "./two-services.js";

const SECRET = "The blue safe opens with 4821";
const QUESTION = "What opens it?";
const DELETIONS: readonly (readonly [what: string, pathFor: (id: string) => string])[] = [
  ["a user", () => "/users/ada"],
  ["a memory", (id) => `/users/ada/memories/${id}`],
];

describe("a deletion that ended in the middle", () => {
  const engine = openAiEngine();
  const services = twoServices(engine);
  const sent = () => engine.requests.map(({ raw }) => raw).join("\n");
  const deleteInVain = async (pathFor: (id: string) => string) => {
    const id = services.source.keep("ada", SECRET);
    services.source.hold = { delete: async () => gone(), deleteUser: async () => gone() };
    expect((await services.one.send("DELETE", pathFor(id))).status).toBe(502);
    expect(services.keptTexts()).toContain(SECRET);
  };

  it.each(DELETIONS)("of %s is finished before anything else is asked of the source", async (_what, pathFor) => {
    await deleteInVain(pathFor);
    // As long as the source does not delete, it is not searched.
    expect((await services.other.chat(QUESTION)).status).toBe(200);
    services.source.hold = {};
    expect((await services.other.chat(QUESTION)).status).toBe(200);
    expect(sent()).not.toContain(SECRET);
    expect(services.keptTexts()).toEqual([]);
  });

  it.each(DELETIONS)("of %s is finished by the next process, unasked", async (_what, pathFor) => {
    services.source.keep("bob", "Bob has a boat");
    await deleteInVain(pathFor);
    services.source.hold = {};
    await services.restart();
    expect(services.keptTexts()).toEqual(["Bob has a boat"]);
    expect(services.faults).toEqual([]);
  });

  it("is finished by another service that comes in between, and both are told that it is", async () => {
    services.source.keep("ada", SECRET);
    const deleting = new Gate();
    services.source.hold = { deleteUser: deleting.pass };
    const first = services.one.send("DELETE", "/users/ada");
    await deleting.reached;
    expect((await services.other.chat(QUESTION)).status).toBe(200);
    expect(sent()).not.toContain(SECRET);
    expect(services.keptTexts()).toEqual([]);
    deleting.open();
    expect((await first).status).toBe(200);
  });
});

describe("two services on one database", () => {
  const services = twoServices(openAiEngine());

  it("answer a repeated id with the same bytes, whichever is asked, also while both are asked at once", async () => {
    const bodies = Array.from({ length: 60 }, (_, n) => {
      const memories = [`Fact ${n}`, SECRET].map((memory) => ({ id: memory, memory }));
      return { user_id: `user-${n % 3}`, request_id: `r-${n}`, query: "?", memories };
    });
    const { one, other } = services;
    // Both have an older state of each user in memory.
    for (const service of [one, other])
      for (const body of bodies.slice(0, 3)) await service.send("POST", "/compose", body);
    const racing = bodies.map((body) =>
      Promise.all([one, other, one].map(({ send }) => send("POST", "/compose", body))),
    );
    for (const answers of await Promise.all(racing)) {
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    }
    expect(services.faults).toEqual([]);
  });

  it("refuse what a batch brought along for a user who was deleted while it was under way, and store none of it", async () => {
    services.source.keep("bob", "Bob has a boat");
    const search = new Gate();
    services.source.hold = { search: search.pass };
    const batch = services.other.send("POST", "/compose/batch", {
      requests: [
        { user_id: "ada", request_id: "given", query: "?", memories: [{ id: "m-1", memory: SECRET }] },
        { user_id: "bob", request_id: "searched", query: "?" },
      ],
    });
    await search.reached;
    services.source.hold = {};
    for (const user of ["ada", "bob"]) expect((await services.one.send("DELETE", `/users/${user}`)).status).toBe(200);
    search.open();
    const { text } = await batch;
    expect(text).toContain('"status":409');
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain("boat");
    expect((await services.one.send("GET", "/users/ada/export")).text).not.toContain(SECRET);
  });
});

describe("an exchange that is kept as a memory", () => {
  const engine = openAiEngine();
  const services = twoServices(engine, { MEMPREFIX_WRITE_BACK: "on" });
  /** What is to be added is then added: it is before this in the user's queue, or after it. */
  const comeBack = () => services.one.send("POST", "/memories", { user_id: "ada", memories: ["Ada came back"] });

  /** A chat whose answer tells the secret, with something done while the engine is at it. */
  async function chatDuring(meanwhile: () => Promise<unknown>, stream = false): Promise<void> {
    const computing = new Gate();
    engine.behave(async ({ body }, response, usage) => {
      await computing.pass();
      if (body.stream) sendEvents(response, streamedAnswer(SECRET, usage));
      else sendJson(response, 200, wholeAnswer(SECRET, usage));
    });
    const chat = services.one.chat(QUESTION, { stream });
    await computing.reached;
    await meanwhile();
    computing.open();
    expect((await chat).text).toContain(stream ? "4821" : SECRET);
    await comeBack();
  }

  const [[, user], [, memory]] = DELETIONS as [(typeof DELETIONS)[number], (typeof DELETIONS)[number]];
  it.each([
    ["the user", "this service", user, "one", false],
    ["the user", "another service", user, "other", true],
    ["a memory", "this service", memory, "one", true],
    ["a memory", "another service", memory, "other", false],
  ] as const)("is not kept where %s was deleted meanwhile (at %s)", async (_what, _at, pathFor, at, stream) => {
    const id = services.source.keep("ada", SECRET);
    await chatDuring(async () => {
      expect((await services[at].send("DELETE", pathFor(id))).status).toBe(200);
    }, stream);
    expect(services.keptTexts()).toEqual(["Ada came back"]);
    engine.requests.length = 0;
    await services.other.chat(QUESTION);
    expect(engine.requests.map(({ raw }) => raw).join("\n")).not.toContain("4821");
  });

  it("is kept where another user was deleted meanwhile", async () => {
    services.source.keep("ada", SECRET);
    await chatDuring(() => services.other.send("DELETE", "/users/bob"));
    expect(services.keptTexts()).toEqual([SECRET, `User: ${QUESTION}\nAssistant: ${SECRET}`, "Ada came back"]);
  });

  it.each(["by a chat", "by a request of its own"])(
    "is taken back where another service deletes the user while it is being added, %s",
    async (how) => {
      const add = new Gate();
      services.source.hold = { add: add.pass };
      const isChat = how === "by a chat";
      const adding = isChat
        ? services.one.chat(QUESTION)
        : services.one.send("POST", "/memories", { user_id: "ada", memories: [SECRET] });
      await add.reached;
      services.source.hold = {};
      expect((await services.other.send("DELETE", "/users/ada")).status).toBe(200);
      services.source.keep("ada", "kept later");
      add.open();
      expect((await adding).status).toBe(isChat ? 200 : 409);
      await comeBack();
      expect(services.keptTexts()).toEqual(["kept later", "Ada came back"]);
    },
  );

  it("has no prompt of its user's wait until it is added", async () => {
    services.source.keep("ada", SECRET);
    const add = new Gate();
    services.source.hold = { add: add.pass };
    await services.one.chat(QUESTION);
    await add.reached;
    engine.requests.length = 0;
    const next = await services.one.chat("And what opens the door?", { memprefix: { write_back: false } });
    expect(next.status).toBe(200);
    expect(engine.requests.map(({ raw }) => raw).join("\n")).toContain("4821");
    add.open();
    await comeBack();
    expect(services.keptTexts()).toEqual([SECRET, expect.stringContaining(QUESTION), "Ada came back"]);
  });

  it("is gone when a deletion of its user that came while it was added is answered", async () => {
    const add = new Gate();
    const deleting = new Gate();
    deleting.open();
    services.source.hold = { add: add.pass, deleteUser: deleting.pass };
    await services.one.chat(QUESTION);
    await add.reached;
    const deletion = services.one.send("DELETE", "/users/ada");
    await deleting.reached;
    add.open();
    expect((await deletion).status).toBe(200);
    expect(services.keptTexts()).toEqual([]);
  });
});
