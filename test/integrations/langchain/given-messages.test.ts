import { describe, expect, it } from "vitest";
import type { ChatMessage } from "../../../src/core/index.js";
import { contentWith, findGiven } from "../../../src/integrations/langchain-messages.js";

const asks = (content: ChatMessage["content"]): ChatMessage => ({ role: "user", content });
const says = (content: string): ChatMessage => ({ role: "assistant", content });
const SECTION = "<memories>\n- Ana has a dog.\n</memories>";
const recalls = (text: string) => asks(`${SECTION}\n\n${text}`);
const system: ChatMessage = { role: "system", content: "Be brief." };
const image = { type: "image_url", image_url: { url: "https://example.com/cat.png" } };

describe("the given messages in a composed prompt", () => {
  const cases: readonly (readonly [
    string,
    readonly ChatMessage[],
    readonly ChatMessage[],
    readonly (number | null)[],
  ])[] = [
    [
      "in their order, with memories",
      [asks("a"), says("b"), asks("c")],
      [asks("a"), says("b"), recalls("c")],
      [0, 1, 2],
    ],
    ["asked again and again", [asks("a"), says("b"), asks("a")], [recalls("a"), says("b"), asks("a")], [0, 1, 2]],
    ["behind those that were cut", [asks("c")], [recalls("a"), says("b"), recalls("c")], [null, null, 0]],
    ["around those that were cut", [asks("a"), asks("e")], [asks("a"), says("b"), recalls("e")], [0, null, 1]],
    ["without some that are left out", [system, asks("a"), says("b"), asks("c")], [system, asks("c")], [0, 3]],
    ["with a message of memories alone", [asks("a")], [asks("a"), asks(SECTION)], [0, null]],
    ["that end as another does", [asks("no"), asks("c")], [asks("oh no"), asks("c")], [null, 1]],
    [
      "of parts",
      [asks([{ type: "text", text: "a" }, image])],
      [asks([{ type: "text", text: SECTION }, { type: "text", text: "a" }, image])],
      [0],
    ],
    ["with marks", [asks("a")], [asks([{ type: "text", text: "a", cache_control: { type: "ephemeral" } }])], [0]],
    [
      "with another image",
      [asks([image])],
      [asks([{ ...image, image_url: { url: "https://example.com/dog.png" } }])],
      [null],
    ],
    ["with other fields", [{ ...asks("a"), name: "ana" }], [recalls("a")], [null]],
  ];
  it.each(cases)("are found %s", (_how, given, composed, of) => {
    expect(findGiven(given, composed).map((found) => found.of)).toEqual(of);
  });

  it("are the same where their fields are in another order", () => {
    const [found] = findGiven(
      [{ role: "user", content: "a", name: "ana" }],
      [{ name: "ana", content: "a", role: "user" }],
    );
    expect(found?.isSame).toBe(true);
  });

  it("have their own parts in their new content", () => {
    const own = [{ type: "text", text: "a" }, image];
    const content = contentWith(
      JSON.parse(JSON.stringify([{ type: "text", text: SECTION }, ...own])) as typeof own,
      own,
    );
    expect((content as readonly unknown[]).slice(1).every((part, at) => part === own[at])).toBe(true);
  });
});
