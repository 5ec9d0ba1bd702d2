import { describe, expect, it } from "vitest";
import { Chat, type ComposeOptions, LABELLED, memory, UserScope, user } from "../compose/scope-fixture.js";
import { expectPromises, textsIn } from "../prompt/prompt-promises.js";

const rome = memory("home", "Lives in Rome.");
const oslo = memory("home", "Lives in Oslo.");
const lima = memory("home", "Lives in Lima.");
const tea = memory("drink", "Likes tea.");

/** Asks once for each list of memories; gives the compositions. */
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
  it('"a memory whose text changed under the same id is sent with its new text; the stale text is not served again"', () => {
    const scope = new UserScope();
    scope.compose([user("?")], [rome, tea]);
    const { messages } = scope.compose([user("?")], [oslo, tea]);
    expect(textsIn(messages).toSorted()).toEqual([tea.text, oslo.text].toSorted());
  });

  it("is given anew, and the text before it is quoted as no longer true", () => {
    const [, second] = asked([rome, tea], [tea, oslo]);
    expect(second?.messages.at(-1)?.content).toBe(
      "<memories>\n- Lives in Oslo.\n</memories>\nNo longer true: Lives in Rome.\nMost relevant: Likes tea.\n\nQuestion 1",
    );
    expect(second?.memories[0]).toEqual({ label: 3, memoryId: "home", placement: "new", rank: 1, replaces: [1] });
  });

  it("with labels gets one of its own, and says which one in this conversation it replaces", () => {
    const [, second] = askedWithLabels([rome, tea], [oslo, tea]);
    expect(second?.messages.at(-1)?.content).toBe(
      "<memories>\n[Doc_3] (replaces [Doc_1]) Lives in Oslo.\nPlease refer to [Doc_2] in the previous conversation.\n</memories>\n\nQuestion 1",
    );
    expect(second?.memories[0]).toEqual({ label: 3, memoryId: "home", placement: "new", rank: 0, replaces: [1] });
  });

  it("is current again, without being sent again, when it goes back to a text given earlier", () => {
    const [, , third, fourth] = asked([rome], [oslo], [rome], [rome]);
    expect(third?.annotations).toEqual(["Current again: Lives in Rome.", "No longer true: Lives in Oslo."]);
    expect(third?.memories).toEqual([
      { label: 1, memoryId: "home", placement: "earlier_turn", rank: 0, replaces: [2] },
    ]);
    // The line before it has just said it.
    expect(fourth?.annotations).toEqual([]);
    const [, , labelled, after] = askedWithLabels([rome], [oslo], [rome], [rome]);
    expect(labelled?.annotations).toEqual([
      "Please refer to [Doc_1] in the previous conversation.",
      "Current again: [Doc_1] (replaces [Doc_2]).",
    ]);
    expect(labelled?.memories).toEqual(third?.memories);
    expect(after?.annotations).toEqual(["Please refer to [Doc_1] in the previous conversation."]);
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
    expect(compositions.map(({ annotations }) => annotations[1])).toEqual([
      undefined,
      undefined,
      "Current again: [Doc_1] (replaces [Doc_2]).",
      "Current again: [Doc_2] (replaces [Doc_1]).",
      undefined,
      "Current again: [Doc_1] (replaces [Doc_2][Doc_3]).",
    ]);
  });

  it("replaces nothing while another memory still has the old text", () => {
    const [, second] = asked([rome, memory("office", rome.text)], [oslo]);
    expect(second?.memories[0]).toMatchObject({ label: 2, replaces: [] });
  });
});
