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
  it("is given anew, and the text before it is quoted as no longer true", () => {
    const [, second] = asked([rome, tea], [tea, oslo]);
    expect(second?.messages.at(-1)?.content).toBe(
      "<memories>\n- Lives in Oslo.\n</memories>\nNo longer true: Lives in Rome.\nMost relevant: Likes tea.\n\nQuestion 1",
    );
    expect(second?.memories[0]).toEqual({ label: 3, memoryId: "home", placement: "new", rank: 1, replaces: [1] });
  });

  it("can go back and forth", () => {
    const listed = asked([rome], [oslo], [rome], [oslo], [lima], [rome]);
    expect(listed.map(({ annotations }) => annotations)).toEqual([
      [],
      ["No longer true: Lives in Rome."],
      ["Current again: Lives in Rome.", "No longer true: Lives in Oslo."],
      ["Current again: Lives in Oslo.", "No longer true: Lives in Rome."],
      ["No longer true: Lives in Oslo."],
      ["Current again: Lives in Rome.", "No longer true: Lives in Lima."],
    ]);
    const compositions = askedWithLabels([rome], [oslo], [rome], [oslo], [lima], [rome]);
    expect(compositions.map(({ memories }) => memories)).toEqual(listed.map(({ memories }) => memories));
    expect(compositions.map(({ annotations }) => annotations[0])).toEqual([
      undefined,
      undefined,
      "Current again: [1] (replaces [2]).",
      "Current again: [2] (replaces [1]).",
      undefined,
      "Current again: [1] (replaces [2][3]).",
    ]);
  });

  it("replaces nothing while another memory still has the old text", () => {
    const [, second] = asked([rome, memory("office", rome.text)], [oslo]);
    expect(second?.memories[0]).toMatchObject({ label: 2, replaces: [] });
  });
});
