import { describe, expect, it } from "vitest";
import { Chat, type ComposeOptions, LABELLED, memory, UserScope } from "../compose/scope-fixture.js";
import { expectPromises } from "../prompt/prompt-promises.js";

const rome = memory("home", "Lives in Rome.");
const oslo = memory("home", "Lives in Oslo.");
const lima = memory("home", "Lives in Lima.");
const tea = memory("drink", "Likes tea.");

const asked = (...requests: (typeof rome)[][]) => askedIn({}, requests);
/** The same of a conversation whose memories have labels. */
const askedWithLabels = (...requests: (typeof rome)[][]) => askedIn(LABELLED, requests);

function askedIn(options: ComposeOptions, requests: readonly (typeof rome)[][]) {
  const chat = new Chat(new UserScope(), "chat", undefined, options);
  return requests.map((requested, n) => {
    const composition = chat.ask(`Question ${n}`, requested);
    expectPromises(composition, requested);
    chat.answer(`Answer ${n}`);
    return composition;
  });
}

describe("a memory whose text changed", () => {
  it("is given after the list, which does not have it, and the text before it is not quoted", () => {
    const [, second] = asked([rome, tea], [tea, oslo]);
    expect(second?.messages.at(-1)?.content).toBe(
      "<memories>\n</memories>\nUpdate: Lives in Oslo.\nMost relevant: Likes tea.\n\nQuestion 1",
    );
    expect(second?.memories[0]).toEqual({ label: 3, memoryId: "home", placement: "new", rank: 1, replaces: [1] });
  });

  it("is an update again when it goes back to a text given earlier", () => {
    const [, , third, fourth] = asked([rome], [oslo], [rome], [rome]);
    expect(third?.annotations).toEqual(["Update: Lives in Rome."]);
    expect(third?.memories).toEqual([
      { label: 1, memoryId: "home", placement: "earlier_turn", rank: 0, replaces: [2] },
    ]);
    // The section before it has just said it.
    expect(fourth?.annotations).toEqual([]);
  });

  it("can go back and forth", () => {
    const listed = asked([rome], [oslo], [rome], [oslo], [lima], [rome]);
    expect(listed.map(({ annotations }) => annotations)).toEqual([
      [],
      ["Update: Lives in Oslo."],
      ["Update: Lives in Rome."],
      ["Update: Lives in Oslo."],
      ["Update: Lives in Lima."],
      ["Update: Lives in Rome."],
    ]);
    const compositions = askedWithLabels([rome], [oslo], [rome], [oslo], [lima], [rome]);
    expect(compositions.map(({ memories }) => memories)).toEqual(listed.map(({ memories }) => memories));
    expect(compositions.map(({ annotations }) => annotations[0])).toEqual([
      undefined,
      "Update: [Doc_2] Lives in Oslo.",
      "Update: [Doc_1] Lives in Rome.",
      "Update: [Doc_2] Lives in Oslo.",
      "Update: [Doc_3] Lives in Lima.",
      "Update: [Doc_1] Lives in Rome.",
    ]);
  });

  it("replaces nothing while another memory still has the old text", () => {
    const [, second] = asked([rome, memory("office", rome.text)], [oslo]);
    expect(second?.memories[0]).toMatchObject({ label: 2, replaces: [] });
  });
});
