import { z } from "zod";
import { checked, EvaluationError } from "../base/run-files.js";
import { LONGMEMEVAL_TYPES, type LongMemEvalType, typeNumber } from "../base/run-record.js";
import type { DialogueTurn, LocomoConversation, Question } from "./locomo-data.js";

const turn = z.looseObject({ role: z.string(), content: z.string(), has_answer: z.boolean().nullish() });
const instance = z.looseObject({
  question_id: z.string().min(1),
  question_type: z.enum(LONGMEMEVAL_TYPES).exclude(["abstention"]),
  question: z.string(),
  answer: z.union([z.string(), z.number()]),
  question_date: z.string(),
  haystack_dates: z.array(z.string()),
  haystack_sessions: z.array(z.array(turn)),
});
type Instance = z.output<typeof instance>;

/** Ends the id of a question that cannot be answered. */
const ABSTENTION = "_abs";

/**
 * Reads LongMemEval's JSON (`longmemeval_s.json` and its other sizes). Every question has its own history, so each becomes a conversation
 * with one question, under the question's id. Throws {@link EvaluationError}.
 */
export function readLongMemEval(json: unknown): LocomoConversation[] {
  const seen = new Set<string>();
  return checked(z.array(instance), json, "not a LongMemEval file", "the whole").map((given) => {
    const { question_id: id, haystack_sessions: sessions, haystack_dates: dates } = given;
    if (seen.has(id)) throw new EvaluationError(`not a LongMemEval file: question ${id} is there twice`);
    seen.add(id);
    if (sessions.length !== dates.length) {
      throw new EvaluationError(
        `not a LongMemEval file: ${id} has ${sessions.length} sessions and ${dates.length} dates`,
      );
    }
    return { id, observations: [], turns: turnsOf(given), questions: [questionOf(given)] };
  });
}

/** Sessions and their turns are numbered from 1, in the file's order: `S3:2`. */
function turnId(session: number, at: number): string {
  return `S${session + 1}:${at + 1}`;
}

function turnsOf({ haystack_sessions: sessions, haystack_dates: dates }: Instance): DialogueTurn[] {
  return sessions.flatMap((turns, session) =>
    turns.map(({ role, content }, at) => ({
      id: turnId(session, at),
      speaker: role,
      text: content,
      session: session + 1,
      sessionTime: dates[session] ?? "",
    })),
  );
}

function questionOf(given: Instance): Question {
  const { question_id: id, question, answer, question_date: askedAt, haystack_sessions: sessions } = given;
  const type: LongMemEvalType = id.endsWith(ABSTENTION) ? "abstention" : given.question_type;
  return {
    question,
    answer: String(answer),
    category: typeNumber(type),
    evidence: sessions.flatMap((turns, session) =>
      turns.flatMap(({ has_answer }, at) => (has_answer === true ? [turnId(session, at)] : [])),
    ),
    askedAt,
    gold: type === "abstention" ? "reason" : type === "single-session-preference" ? "preference" : "answer",
  };
}
