import { describe, expect, it } from "vitest";
import { InputError, readTryInput, searched } from "../../src/dashboard/try-input.js";

describe("what is pasted into the try-it view", () => {
  it("is lines of text: memories, and messages that may go over several lines", () => {
    const { memories, system, questions } = readTryInput(
      "one\n\n  two \n",
      "System: Be brief.\nuser: Where?\nToday.\nassistant: Here.\nuser: When?",
    );
    expect(memories).toEqual([
      { id: "m1", memory: "one" },
      { id: "m2", memory: "two" },
    ]);
    expect(system).toBe("Be brief.");
    expect(questions.map(({ query }) => query)).toEqual(["Where?\nToday.", "When?"]);
    expect(questions[1]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
  });

  it("is refused where it cannot be tried", () => {
    expect(() => readTryInput("", "user: x")).toThrow(InputError);
    expect(() => readTryInput("x\n".repeat(201), "user: x")).toThrow(/at most 200/);
  });

  it("is searched by words that it shares with the question, rare ones first", () => {
    const memories = ["Ana likes trams", "Ana eats bread", "Ana has trams and bread in Lisbon"].map((memory, at) => ({
      id: `m${at}`,
      memory,
    }));
    const ids = (query: string, k: number) => searched(memories, query, k).map(({ id }) => id);
    expect(ids("Is there a tram in Lisbon?", 2)).toEqual(["m2", "m0"]);
    expect(ids("Bread?", 1)).toEqual(["m1"]);
    expect(ids("Nothing of it", 3)).toEqual(["m0", "m1", "m2"]);
  });
});
