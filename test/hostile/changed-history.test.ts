/*
 * Attacked: that what a client sends now is what is sent. A client may redact, shorten, sign again, move or take out what it said before.
 * Broke: with the default `history`, a first message whose text was the end of the stored one, or whose image alone had changed, was taken for
 * the stored one that its client had cut, and the stored one was sent; what was missing behind a first message, or was a tool's, was put back.
 * Held: whole messages that a client cuts at the front are put back, and nothing else.
 */
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { ChatMessage } from "../../src/core/index.js";
import { createMemprefix } from "../../src/index.js";
import { sendWith } from "../http/guards/callers.js";
import { answeringSource } from "../http/routes/answering-source.js";
import { openAiEngine } from "../http/routes/openai-engine.js";
import { answersResponses } from "../http/routes/responses-engine.js";
import { servedApp } from "../http/server/served-app.js";
import { calls, part, result, says, user } from "../messages.js";
import { IS_WHOLE } from "../run-length.js";
import { itemsOf } from "./api-forms.js";
import { bare } from "./section-pattern.js";

type Messages = readonly ChatMessage[];

const image = (url: string) => ({ type: "image_url", image_url: { url } });
const asks = (city: string) => calls("weather", JSON.stringify({ city }));
const png = (bytes: string) => `data:image/png;base64,${Buffer.from(bytes).toString("base64")}`;
const ANSWER = "It is in the drawer, as it was all year.";

/** What is said in a conversation; a request ends with each of the user's messages, and with the tool's result. */
const SPOKEN: Messages = [
  { role: "system", content: "Be kind." },
  user("Where is my umbrella?"),
  asks("Turin"),
  result("Rain until the evening."),
  says("Take it with you."),
  user("And my scarf?"),
  says(ANSWER),
  user("And the gloves?"),
  says("With the scarf."),
  user("And now?"),
];
const ENDS = [2, 4, 6, 8, 10];
/** Requests that have the old form; those from here on have the new one. */
const OLD_REQUESTS = 3;

/** A message as a client sends it first, with OLD in it (in an image, its base64), and as it sends it later, without. */
type Change = readonly [at: number, old: ChatMessage, now: ChatMessage];

const WHERE = "Where is my umbrella?";
const RAIN = "Rain until the evening.";
const KIND = { role: "system", content: "Be kind." };
const seen = (url: string) => user([part("What is it?"), image(url)]);
const CHANGES: Record<string, Change> = {
  "cuts the front of its first message": [1, user(`My card is OLD-1. ${WHERE}`), user(WHERE)],
  "cuts the end of its first message": [1, user(`${WHERE} OLD`), user(WHERE)],
  "signs its image again": [1, seen("https://cdn.test/a.png?sig=OLD"), seen("https://cdn.test/a.png?sig=new")],
  "sends other bytes of an image with the same text": [1, seen(png("OLD")), seen(png("new"))],
  "takes an image out": [1, seen("https://cdn.test/OLD.png"), user([part("What is it?")])],
  "has another name": [1, user("Where?", { name: "OLD" }), user("Where?", { name: "ada" })],
  "has another system prompt": [0, { ...KIND, content: "OLD Be kind." }, KIND],
  "changes a tool call's arguments": [2, asks("OLD"), asks("Turin")],
  "shortens a tool's result from its front": [3, result(`OLD. ${RAIN}`), result(RAIN)],
  "cuts the front of an answer": [4, says("OLD. Take it with you."), says("Take it with you.")],
};

/** Only chat completions have these. */
const thought = (reasoning_content: string) => says("Take it.", { reasoning_content });
const marked = part("Where?", { cache_control: { type: "ephemeral", ttl: "OLD" } });
const CHANGES_OF_CHATS: Record<string, Change> = {
  "changes a field that nobody knows": [1, user("Where?", { x_of: "OLD" }), user("Where?", { x_of: "new" })],
  "changes what an answer thought": [4, thought("OLD"), thought("new")],
  "takes a mark off": [1, user([marked]), user([part("Where?")])],
};

const OLD = new RegExp(`OLD|${Buffer.from("OLD").toString("base64")}`);

/** The histories that a client sends one after the other. */
function requestsOf([at, old, now]: Change): readonly Messages[] {
  return ENDS.map((end, turn) => {
    const message = turn < OLD_REQUESTS ? old : now;
    return SPOKEN.slice(0, end).map((said, n) => (n === at ? message : said));
  });
}

const engine = openAiEngine();
const source = answeringSource([]);
const app = servedApp({ source: () => source, upstream: engine });

/** A client's request, and what reaches the engine of it. */
type Send = (messages: Messages, conversation: string, stream: boolean) => Promise<string>;

const post = async (path: string, body: object, conversation: string) => {
  const whose = { "x-memprefix-user": "ada", "x-memprefix-conversation": conversation };
  const { status, text: answered } = await sendWith(app, whose, "POST", path, { model: "m", ...body });
  expect(status, answered).toBe(200);
  return engine.requests.at(-1)?.raw ?? "";
};
const composed = async (messages: Messages, conversation_id: string, more: object = {}) =>
  JSON.stringify((await app.compose({ user_id: "ada", conversation_id, messages, ...more })).messages);

const DOORS: Record<string, Send> = {
  "chat completions": async (messages, conversation, stream) => {
    const raw = await post("/v1/chat/completions", { messages, stream }, conversation);
    expect(bare(engine.requests.at(-1)?.body.messages ?? []), conversation).toEqual(messages);
    return raw;
  },
  responses: (messages, conversation, stream) =>
    post("/v1/responses", { input: itemsOf(messages), store: false, stream }, conversation),
  "/compose": (messages, conversation) => composed(messages, conversation),
  "/compose, where what a client cuts is put back whatever it costs": (messages, conversation) =>
    composed(messages, conversation, { history: "extended" }),
};

/** Everything after the change that has the old form, or that lacks the newest question. */
async function faultsOf(what: string, change: Change, send: Send): Promise<string[]> {
  const faults: string[] = [];
  for (const [request, messages] of requestsOf(change).entries()) {
    source.found = [0, 1, 2].map((n) => `Ada has thing ${request}.${n} in the hall.`);
    const sent = await send(messages, what, request % 2 === 1);
    const asked = JSON.stringify(messages.at(-1)?.content).slice(1, -1);
    if (request >= OLD_REQUESTS && (OLD.test(sent) || !sent.includes(asked)))
      faults.push(`${what}, request ${request}: ${sent.slice(0, 400)}`);
  }
  return faults;
}

describe("a client that changed what it said", () => {
  it.each(Object.entries(DOORS))("has what it sends now: %s", async (door, send) => {
    if (door === "responses") engine.behave(answersResponses());
    const isChat = door === "chat completions" || door.startsWith("/compose");
    const changes = Object.entries(isChat ? { ...CHANGES, ...CHANGES_OF_CHATS } : CHANGES);
    // Where not all is run, the doors behind the first take turns with the changes.
    const turn = Object.keys(DOORS).indexOf(door);
    const tried = changes.filter((_, at) => IS_WHOLE || turn === 0 || at % 2 === turn % 2);
    const faults = [];
    for (const [what, change] of tried) faults.push(...(await faultsOf(what, change, send)));
    expect(faults).toEqual([]);
  });
});

describe("a library's client", () => {
  it("that changes its own objects has what they are now", async () => {
    const memprefix = createMemprefix({ dataDir: app.dataDir, source: { kind: "none" } });
    onTestFinished(() => memprefix.close());
    const memories = [{ id: "a", memory: "Ada rows." }];
    const first = { role: "user", content: "My card is OLD-1. Where is it?" };
    const shown = image("https://cdn.test/OLD");
    const messages: ChatMessage[] = [first, says("There."), user([part("Look."), shown])];
    const next = async () =>
      JSON.stringify(await memprefix.compose({ userId: "ada", conversationId: "own", messages, memories }));
    await next();
    first.content = "Where is it?";
    shown.image_url.url = "https://cdn.test/new";
    for (const question of ["And now?", "And then?"]) {
      messages.push(says("A boat."), user(question));
      expect(await next()).not.toContain("OLD");
    }
  });
});

describe("a client with a window", () => {
  const send = (messages: Messages, history = "extended") =>
    app.compose({ user_id: "ada", conversation_id: `with ${history}`, history, memories: [], messages });
  const said = Array.from({ length: 12 }, (_, n) =>
    n % 2 === 0 ? user(`Question ${n} of many, and a long one?`) : says(`Answer ${n}, which is as long.`),
  );
  const begin = async (history?: string) => {
    for (const end of [1, 3, 5, 7]) await send(said.slice(Math.max(0, end - 5), end), history);
  };

  it("has before it what it cut, and its own messages as it sends them now", async () => {
    await begin();
    const window = said.slice(4, 9).map((message) => ({ ...message, id: `msg-${String(message.content).length}` }));
    const { messages } = await send(window);
    expect(messages).toEqual([...said.slice(0, 4), ...window]);
  });
  it("has what it leaves out behind its first message only where it wants all that is put back", async () => {
    const pinned = [said[0] as ChatMessage, ...said.slice(5, 9)];
    await begin("auto");
    expect((await send(pinned, "auto")).messages).toEqual(pinned);
    await begin();
    expect((await send(pinned)).messages).toEqual(said.slice(0, 9));
  });

  it("has no tool's call or result that it leaves out", async () => {
    const turn = [user("Rain?"), asks("Turin"), result("No."), says("It is dry."), user("Thanks. And the umbrella?")];
    await send(turn.slice(0, 3), "auto");
    await send(turn, "auto");
    const bared = [turn[0], turn[3], turn[4], says(ANSWER), user("So?")] as Messages;
    expect((await send(bared, "auto")).messages).toEqual(bared);
  });
});

describe("what was recorded of a message that its client changed since", () => {
  const kept = answeringSource([]);
  const recorded = servedApp({
    source: () => kept,
    upstream: engine,
    environment: { MEMPREFIX_WRITE_BACK: "on", MEMPREFIX_SOURCE: "rest", MEMPREFIX_MEM0_URL: "http://127.0.0.1:1" },
  });
  beforeEach(() => {
    kept.added.length = 0;
  });
  const ask = async (messages: Messages, conversation = "c", more: object = {}) => {
    kept.found = kept.added.map((memory) => memory.text);
    const count = kept.added.length;
    const asked = { model: "m", user: "ada", messages, memprefix: { conversation_id: conversation, ...more } };
    const { status, text: said, headers } = await sendWith(recorded, {}, "POST", "/v1/chat/completions", asked);
    expect(status, said).toBe(200);
    await vi.waitFor(() => expect(kept.added).toHaveLength(count + 1));
    return {
      sent: engine.requests.at(-1)?.raw ?? "",
      warnings: headers.get("x-memprefix-warnings")?.split(",") ?? [],
    };
  };
  const answered = says("Indeed.");
  const card = user("My card is OLD-1. Is it new?");

  const redactions: Record<string, [Messages, Messages]> = {
    "the front of a question": [[card], [user("Is it new?"), answered]],
    "all of a question": [[card], [user("[redacted]"), answered]],
    "a question and its answer": [
      [user("Hello?"), says("Hello."), card],
      [user("Hello?"), says("Hello."), user("?"), says("!")],
    ],
  };
  it.each(Object.entries(redactions))("does not bring the old form of %s back", async (_what, [before, after]) => {
    await ask(before);
    await ask([...before, answered, user("And so?")]);
    const history: ChatMessage[] = [...after];
    for (let turn = 0; turn < 3; turn++) {
      history.push(user(`Turn ${turn}?`));
      const { sent, warnings } = await ask(history);
      expect(sent).not.toContain("OLD");
      expect(warnings).toContain("memory_replaced");
      history.push(answered);
    }
  });

  it("is given in other conversations, and where a window cut the message", async () => {
    await ask([card]);
    expect((await ask([user("What do you know?")], "another")).sent).toContain("OLD-1");
    const said = [card, answered];
    for (let turn = 0; turn < 3; turn++) {
      said.push(user(`Turn ${turn}?`));
      const { sent } = await ask(said.slice(-3), "c", { history: "exact" });
      expect(sent.split("OLD-1")).toHaveLength(2);
      said.push(answered);
    }
  });
});
