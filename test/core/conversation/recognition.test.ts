import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Conversation, type Turn } from "../../../src/core/conversation/conversation.js";
import { commonMessages, longestMatch, unnamedHistory } from "../../../src/core/conversation/recognition.js";
import type { ChatMessage } from "../../../src/core/index.js";
import { meaningOf } from "../../../src/core/text/message.js";

const says = (role: "user" | "assistant" | "tool", content: string): ChatMessage => ({ role, content });
const [user, assistant] = [(text: string) => says("user", text), (text: string) => says("assistant", text)];

/** A conversation of turns: each adds messages to the turn with that number, or begins. */
function conversationOf(
  ...turns: readonly (readonly [parent: number | null, ...added: ChatMessage[]])[]
): Conversation {
  const made = turns.map(([parent, ...added], at) => ({ id: at + 1, parent, meant: added.map(meaningOf) }));
  return new Conversation(made as unknown as readonly Turn[]);
}

function commonWith(conversation: Conversation, ...messages: readonly ChatMessage[]): number | null {
  const history = unnamedHistory(messages);
  return history && commonMessages(conversation, history);
}

describe("a history without a name", () => {
  const [u1, a1, u2, a2] = [user("Where?"), assistant("Here."), user("When?"), assistant("Now.")];
  const single = conversationOf([null, u1]);
  const longer = conversationOf([null, u1], [1, a1, u2]);

  it("is no conversation's before there is an answer", () => {
    expect(commonWith(single, u1)).toBeNull();
    expect(commonWith(single, { role: "system", content: "Be brief." }, u1, u1)).toBeNull();
  });

  it.each<[string, Conversation, readonly ChatMessage[], number]>([
    ["a single prompt, whose answer is not known", single, [u1, a1, u2], 1],
    ["its instructions do not count", single, [{ role: "system", content: "Be brief." }, u1, a1, u2], 1],
    ["a conversation, whose last answer is not known", longer, [u1, a1, u2, a2, user("Why?")], 3],
    ["the question is asked in other words", longer, [u1, a1, user("Since when?")], 2],
    ["the same request again", longer, [u1, a1, u2], 3],
    ["the answer is another", longer, [u1, a2, u2], 0],
    ["the question is another", longer, [u2, a1, u2], 0],
    ["no answer follows", single, [u1, u2, a1], 0],
    ["a list of examples with another question", conversationOf([null, u1, a1, u2]), [u1, a1, user("Why?")], 0],
    [
      "the longer of two branches",
      conversationOf([null, u1], [1, a1, u1], [1, a1, u2], [3, a2, u1]),
      [u1, a1, u2, a2, u2],
      4,
    ],
  ])("has so many messages of a conversation: %s", (_what, conversation, messages, common) => {
    expect(commonWith(conversation, ...messages)).toBe(common);
  });

  it("always finds a conversation that it continues", () => {
    const exchange = fc.tuple(fc.constantFrom("a", "b"), fc.constantFrom("c", "d"));
    fc.assert(
      fc.property(fc.array(exchange, { minLength: 1, maxLength: 6 }), (exchanges) => {
        const turns = exchanges.map(([question], at) => {
          const answer = exchanges[at - 1]?.[1];
          return [at === 0 ? null : at, ...(answer === undefined ? [] : [assistant(answer)]), user(question)] as const;
        });
        const said = exchanges.flatMap(([question, answer]) => [user(question), assistant(answer)]);
        expect(commonWith(conversationOf(...turns), ...said, user("And?"))).toBe(said.length - 1);
      }),
    );
  });
});

describe("of several conversations", () => {
  it.each([
    [[], null],
    [[0], null],
    [[1, 3, 2], 1],
    [[2, 2], null],
    [[3, 2, 2], 0],
  ])("the longest match is continued, and of two equal ones neither: %j", (commons, found) => {
    expect(longestMatch(commons.map((common, id) => ({ id, common })))).toBe(found);
  });
});
