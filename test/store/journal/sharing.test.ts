import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ChatMessage,
  type ConversationId,
  messageDigest,
  type Turn,
  type TurnId,
} from "../../../src/core/index.js";
import { SharedMessage, sharedKey, shareMessages } from "../../../src/store/journal/said-codec.js";
import { anyComposedRecord } from "./any-said.js";

const text = (length: number) => "and so on ".repeat(Math.ceil(length / 10)).slice(0, length);
const user = (length = 200): ChatMessage => ({ role: "user", content: text(length) });
const assistant = (length = 200): ChatMessage => ({ role: "assistant", content: text(length) });
const tool = (length = 200): ChatMessage => ({ role: "tool", tool_call_id: "c", content: text(length) });

interface Told {
  /** Of the first turn. */
  readonly parent?: number;
  readonly conversation?: string;
  readonly restated?: readonly ChatMessage[];
}

const turnOf = (given: readonly ChatMessage[], { parent, conversation }: Told) => ({
  turn: {
    parent: (parent ?? null) as TurnId | null,
    conversationId: (conversation ?? null) as ConversationId | null,
    given: given.map((message) => messageDigest(message)),
  } as unknown as Turn,
  given,
});

/** A letter for each message: `r` where its record refers to it. */
function sharedOf(given: readonly ChatMessage[], told: Told = {}): string {
  const { restated } = told;
  const before = restated === undefined ? [] : [turnOf(restated, told)];
  const parent = restated === undefined ? told : { ...told, parent: 7 };
  const { turns, rows } = shareMessages(before, turnOf(given, parent));
  const said = turns.flatMap((turn) => turn.given);
  const referred = said.flatMap((message) => (message instanceof SharedMessage ? [message.key] : []));
  expect([...rows.keys()].sort()).toEqual([...new Set(referred)].sort());
  return said.map((message) => (message instanceof SharedMessage ? "r" : "-")).join("");
}

const MANY = Array.from({ length: 6 }, () => [user(), assistant()]).flat();

describe("which messages a record refers to", () => {
  it.each([
    ["a question of its own", [user()], {}, "-"],
    ["a question behind a history", [user(), assistant(), user()], {}, "rr-"],
    ["results of a tool behind its call", [user(), assistant(), tool(), tool()], {}, "rr--"],
    [
      "a window of a conversation, which its client sends again",
      [user(), assistant(), user()],
      { conversation: "c" },
      "rrr",
    ],
    ["a conversation's first question", [user()], { conversation: "c" }, "-"],
    ["what is new in a conversation", [assistant(), user()], { conversation: "c", parent: 1 }, "--"],
    [
      "a tool's calls and results in one",
      [assistant(), tool(), assistant(), user()],
      { conversation: "c", parent: 1 },
      "----",
    ],
    ["everything behind an edit", [...MANY, user()], { conversation: "c", parent: 1 }, "rrrrr--------"],
    ["an epoch's window behind its front", [assistant(), user()], { conversation: "c", restated: [user()] }, "rrr"],
    [
      "what a client says again in other words",
      [assistant(), user()],
      { conversation: "c", restated: MANY, parent: 1 },
      "rrrr----------",
    ],
    ["questions without an answer", [user(), user(), user()], {}, "rr-"],
    [
      "many results, of which some may be old",
      [assistant(), ...Array.from({ length: 10 }, () => tool())],
      {},
      "rrr--------",
    ],
    ["short messages, which take less than a reference", [user(20), assistant(20), user()], {}, "---"],
    ["a long question, wherever it is", [user(9_000)], { conversation: "c", parent: 1 }, "r"],
  ] as const)("%s", (_, given, told, shared) => {
    expect(sharedOf(given, told)).toBe(shared);
  });

  it("is none that turns know by another digest than its own", () => {
    const given = [user(), assistant(), user(), assistant()];
    const { turn } = turnOf(given, {});
    const wrong = { ...turn, given: [...turn.given].reverse() };
    const { turns } = shareMessages([], { turn: wrong, given });
    expect(turns[0]?.given).toEqual(given);
  });

  it("has keys that are equal for equal JSON alone", () => {
    const property = fc.property(anyComposedRecord, anyComposedRecord, (one, two) => {
      const messages = [one, two].flatMap(({ turns }) =>
        turns.flatMap(({ given }) =>
          given.flatMap((message) => (message === null || message instanceof SharedMessage ? [] : [message])),
        ),
      );
      const jsonOf = new Map(messages.map((message) => [sharedKey(message), JSON.stringify(message)]));
      for (const message of messages) expect(jsonOf.get(sharedKey(message))).toBe(JSON.stringify(message));
    });
    fc.assert(property);
    const [plain, turned] = [
      { role: "user", content: "Hi" },
      { content: "Hi", role: "user" },
    ];
    expect(messageDigest(plain)).toBe(messageDigest(turned));
    expect(sharedKey(plain)).not.toBe(sharedKey(turned));
  });
});
