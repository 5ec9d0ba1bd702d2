/*
 * LoCoMo as a source of questions: its data file, its memories in Mem0, and the search results for each question.
 *
 * Enters: a file in LoCoMo's format, and a memory source.
 * Leaves: conversations with questions, their memories, and recorded searches, which all arms of a run share. Each is written at once, so
 * that a resumed run repeats none.
 */

import { z } from "zod";
import { checked, EvaluationError } from "../base/run-files.js";

/** A fact extracted from a session, ready to be a memory. */
export interface Observation {
  readonly text: string;
  readonly speaker: string;
  readonly session: number;
  readonly sessionTime: string;
  /** Ids of the dialogue turns that say it. */
  readonly evidence: readonly string[];
}

export interface DialogueTurn {
  /** LoCoMo's `dia_id`, which evidence names. */
  readonly id: string;
  readonly speaker: string;
  /** The words, and the caption of a shared photo. */
  readonly text: string;
  readonly session: number;
  readonly sessionTime: string;
}

export interface Question {
  readonly question: string;
  /** Null in the adversarial category 5, whose questions have no answer. */
  readonly answer: string | null;
  /** LoCoMo's category number; papers permute the names. */
  readonly category: number;
  readonly evidence: readonly string[];
  /** When it is asked, in the data set's words; absent: unknown. */
  readonly askedAt?: string;
  readonly gold?: GoldKind;
}

/** Kind of gold answer: an answer (default), what a good answer respects of the user, or why there is none. */
export type GoldKind = "answer" | "preference" | "reason";

/** The question as sent to the model: with its time, where known. */
export function askedText({ question, askedAt }: Question): string {
  return askedAt === undefined ? question : `It is ${askedAt}. ${question}`;
}

export interface LocomoConversation {
  readonly id: string;
  readonly observations: readonly Observation[];
  readonly turns: readonly DialogueTurn[];
  readonly questions: readonly Question[];
}

const NOT_LOCOMO = "not a LoCoMo file";

/** Turn ids. Some entries of the published file pack several into one text: `D8:6; D9:17`. */
const evidence = z
  .union([z.string(), z.array(z.string())])
  .transform((ids) => [ids].flat().flatMap((packed) => packed.split(/[\s;,]+/).filter((id) => id !== "")));
const sample = z.looseObject({
  sample_id: z.string(),
  conversation: z.record(z.string(), z.unknown()),
  observation: z.record(z.string(), z.record(z.string(), z.array(z.tuple([z.string(), evidence]).rest(z.unknown())))),
  qa: z.array(
    z.looseObject({
      question: z.string(),
      answer: z.union([z.string(), z.number()]).optional(),
      category: z.int(),
      evidence: evidence.default([]),
    }),
  ),
});

const sessionTurns = z.array(
  z.looseObject({
    speaker: z.string(),
    dia_id: z.string(),
    text: z.string(),
    blip_caption: z.string().optional(),
  }),
);

/** Throws {@link EvaluationError}. */
export function readLocomo(json: unknown): LocomoConversation[] {
  return checked(z.array(sample), json, NOT_LOCOMO, "the whole").map(
    ({ sample_id, conversation, observation, qa }) => ({
      id: sample_id,
      observations: sessionsIn(observation, /^session_(\d+)_observation$/).flatMap(({ session, value: speakers }) =>
        Object.entries(speakers).flatMap(([speaker, facts]) =>
          facts.map(([text, ids]) => ({
            text,
            speaker,
            session,
            sessionTime: timeOf(session, conversation),
            evidence: ids,
          })),
        ),
      ),
      turns: turnsOf(sample_id, conversation),
      questions: qa.map(({ question, answer, category, evidence: ids }) => ({
        question,
        answer: answer === undefined ? null : String(answer),
        category,
        evidence: ids,
      })),
    }),
  );
}

function sessionsIn<V>(fields: Readonly<Record<string, V>>, name: RegExp): { session: number; value: V }[] {
  return Object.entries(fields)
    .map(([key, value]) => ({ session: Number(name.exec(key)?.[1]), value }))
    .filter(({ session }) => Number.isInteger(session))
    .sort((a, b) => a.session - b.session);
}

function timeOf(session: number, conversation: Readonly<Record<string, unknown>>): string {
  return String(conversation[`session_${session}_date_time`] ?? "");
}

function turnsOf(id: string, conversation: Readonly<Record<string, unknown>>): DialogueTurn[] {
  return sessionsIn(conversation, /^session_(\d+)$/).flatMap(({ session, value: said }) => {
    const at = `${id}.conversation.session_${session}`;
    return checked(sessionTurns, said, `${NOT_LOCOMO}: ${at}`, "").map(({ dia_id, speaker, text, blip_caption }) => ({
      id: dia_id,
      speaker,
      text: blip_caption === undefined ? text : `${text} (shares ${blip_caption})`.trim(),
      session,
      sessionTime: timeOf(session, conversation),
    }));
  });
}

/** The conversation with this id; by default the first. Throws {@link EvaluationError}. */
export function pickConversation(conversations: readonly LocomoConversation[], id?: string): LocomoConversation {
  const picked = id === undefined ? conversations[0] : conversations.find((conversation) => conversation.id === id);
  if (picked !== undefined) return picked;
  const ids = conversations.map((conversation) => conversation.id).join(", ");
  throw new EvaluationError(
    id === undefined ? "the file has no conversation" : `no conversation ${id}; there are: ${ids}`,
  );
}

export interface AskedQuestion {
  readonly at: number;
  readonly question: Question;
}

export interface EvaluatedConversation {
  readonly id: string;
  readonly conversation: LocomoConversation;
  readonly asked: readonly AskedQuestion[];
}

export interface QuestionChoices {
  /** Ids; null: all. */
  readonly conversations: readonly string[] | null;
  readonly categories: readonly number[];
  /** First questions of each conversation, within these categories; null: all. */
  readonly limit: number | null;
}

/** Selects questions, and the conversations that have any. Throws {@link EvaluationError} where none is left, or a conversation is unknown. */
export function pickQuestions(
  file: readonly LocomoConversation[],
  { conversations, categories, limit }: QuestionChoices,
): readonly EvaluatedConversation[] {
  const picked = conversations === null ? file : conversations.map((id) => pickConversation(file, id));
  const evaluated = picked.flatMap((conversation): EvaluatedConversation[] => {
    const questions = conversation.questions
      .map((question, at) => ({ at, question }))
      .filter(({ question }) => categories.includes(question.category));
    const asked = questions.slice(0, limit ?? undefined);
    return asked.length === 0 ? [] : [{ id: conversation.id, conversation, asked }];
  });
  if (evaluated.length === 0) throw new EvaluationError("no question is of these categories");
  return evaluated;
}
