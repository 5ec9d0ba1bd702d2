import { describe, expect, it } from "vitest";
import { EvaluationError } from "../../../src/eval/base/run-files.js";
import { categoryTitle, LONGMEMEVAL_TYPES, typeNumber } from "../../../src/eval/base/run-record.js";
import { givenMemories } from "../../../src/eval/locomo/ingesting.js";
import { askedText } from "../../../src/eval/locomo/locomo-data.js";
import { readLongMemEval } from "../../../src/eval/locomo/longmemeval-data.js";
import { LONGMEMEVAL_SAMPLE } from "./longmemeval-sample.js";

const read = readLongMemEval(JSON.parse(JSON.stringify(LONGMEMEVAL_SAMPLE)));
const of = (id: string) => read.find((conversation) => conversation.id === id);

describe("readLongMemEval", () => {
  it("makes every question a conversation of its own, with sessions, dates, both speakers and the turns that have the answer", () => {
    expect(read.map(({ id, questions }) => [id, questions.length])).toEqual(
      LONGMEMEVAL_SAMPLE.map(({ question_id }) => [question_id, 1]),
    );
    const multi = of("gpt4_59c863d7");
    expect(multi?.turns).toHaveLength(8);
    expect(multi?.turns[2]).toEqual({
      id: "S2:1",
      speaker: "user",
      text: "I finished a Spitfire model kit.",
      session: 2,
      sessionTime: "2023/05/11 (Wed) 02:21",
    });
    expect(multi?.questions[0]).toMatchObject({ answer: "2", evidence: ["S2:1", "S3:1"], gold: "answer" });
    expect(of("7161e7e2")?.questions[0]?.evidence).toEqual(["S2:2"]);
    const [first] = givenMemories(multi ?? (read[0] as (typeof read)[0]), "turns");
    expect(first?.text).toBe("user (2023/05/10 (Wed) 02:21): How do I get wine out of a carpet?");
  });

  it("knows all types, questions that cannot be answered being one, and what the gold answer is", () => {
    const types = read.map(({ questions }) => categoryTitle(questions[0]?.category ?? 0));
    expect(types.toSorted()).toEqual([...LONGMEMEVAL_TYPES].sort());
    expect(of("a96c20ee_abs")?.questions[0]).toMatchObject({ category: typeNumber("abstention"), gold: "reason" });
    expect(of("8a2466db")?.questions[0]?.gold).toBe("preference");
    expect(categoryTitle(2)).toBe("Category 2");
  });

  it("asks with the day, without which nobody can say how long ago something was", () => {
    const [question] = of("gpt4_2655b836")?.questions ?? [];
    expect(question && askedText(question)).toBe(
      "It is 2023/05/30 (Tue) 23:40. How many days ago did I service my car?",
    );
    expect(askedText({ question: "When?", answer: "May", category: 2, evidence: [] })).toBe("When?");
  });

  it.each([
    ["something else", { conversations: [] }, /^not a LongMemEval file: the whole/],
    ["LoCoMo's file", [{ sample_id: "conv-26", qa: [] }], /^not a LongMemEval file: 0\.question_id/],
    ["a type it does not know", [{ ...LONGMEMEVAL_SAMPLE[0], question_type: "riddle" }], /0\.question_type/],
    ["a question twice", [LONGMEMEVAL_SAMPLE[0], LONGMEMEVAL_SAMPLE[0]], /question e47becba is there twice/],
    ["sessions without dates", [{ ...LONGMEMEVAL_SAMPLE[0], haystack_dates: [] }], /has 3 sessions and 0 dates/],
  ])("refuses %s", (_what, json, says) => {
    expect(() => readLongMemEval(json)).toThrow(EvaluationError);
    expect(() => readLongMemEval(json)).toThrow(says);
  });
});
