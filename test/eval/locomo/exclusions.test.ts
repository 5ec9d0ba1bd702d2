import { describe, expect, it } from "vitest";
import { EvaluationError } from "../../../src/eval/base/run-files.js";
import {
  type LocomoConversation,
  NOTHING_EXCLUDED,
  pickQuestions,
  readExclusions,
} from "../../../src/eval/locomo/locomo-data.js";

const conversation = (id: string, ...asked: string[]): LocomoConversation => ({
  id,
  observations: [],
  turns: [],
  questions: asked.map((question, at) => ({ question, answer: "Yes", category: at === 1 ? 5 : 4, evidence: [] })),
});
const FILE = [conversation("conv-26", "Who?", "When?", "Where?", "Why?"), conversation("conv-30", "What?")];
const picked = (excluded: typeof NOTHING_EXCLUDED, limit: number | null = null) =>
  pickQuestions(FILE, { conversations: null, categories: [1, 2, 3, 4], limit, excluded });

describe("a list of exclusions", () => {
  it("leaves out questions by conversation and place, before the limit, and whole conversations; those that are asked are counted", () => {
    const list = "# an audit's\nconv-26:0 Who?\n\nconv-26:1\r\nconv-26:3\nconv-30\n";
    const { conversations, excludedQuestions } = picked(readExclusions("labels.txt", list, FILE), 1);
    expect(conversations.map(({ id, asked }) => [id, asked.map(({ at }) => at)])).toEqual([["conv-26", [2]]]);
    // The second one's category is not asked.
    expect(excludedQuestions).toBe(3);
    expect(picked(NOTHING_EXCLUDED, 1).conversations.map(({ asked }) => asked[0]?.at)).toEqual([0, 0]);
  });

  it.each([
    ["conv-31:0", "labels.txt, line 2: the data has no conversation conv-31"],
    ["conv-26:4", "labels.txt, line 2: conv-26 has 4 questions, so no question 4"],
    ["conv-26:0 Whose?", 'labels.txt, line 2: question 0 of conv-26 is another one: "Who?"'],
    ["conv-26 Who?", "labels.txt, line 2: has words behind it"],
  ])("refuses %s: a list for another file is noticed", (line, says) => {
    const read = () => readExclusions("labels.txt", `conv-30\n${line}`, FILE);
    expect(read).toThrow(EvaluationError);
    expect(read).toThrow(says);
  });

  it("leaves something", () => {
    expect(() => picked(readExclusions("labels.txt", "conv-26\nconv-30", FILE))).toThrow("every question is excluded");
  });
});
