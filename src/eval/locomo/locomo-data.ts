/*
 * LoCoMo as a source of questions: its data file, its memories in Mem0, and what Mem0's search found for each question.
 *
 * Enters: a file in LoCoMo's format, and a memory source.
 * Leaves: conversations with the questions to ask, the memories kept of them, and recorded searches, which every arm of a run shares.
 * What was ingested or searched is written at once, so that a resumed run repeats neither.
 */

import { z } from "zod";
import { checked, EvaluationError } from "../base/run-files.js";

/** A fact that was extracted from a session; ready to be a memory. */
export interface Observation {
  readonly text: string;
  readonly speaker: string;
  readonly session: number;
  readonly sessionTime: string;
  /** Ids of the dialogue turns that say it. */
  readonly evidence: readonly string[];
}

/** One thing that somebody said. */
export interface DialogueTurn {
  /** LoCoMo's `dia_id`, which evidence names. */
  readonly id: string;
  readonly speaker: string;
  /** What was said, and what a photo that was shared with it shows. */
  readonly text: string;
  readonly session: number;
  readonly sessionTime: string;
}

/** A question on a conversation. */
export interface Question {
  readonly question: string;
  /** Null in the adversarial category 5, where there is nothing to know. */
  readonly answer: string | null;
  /** LoCoMo's category number; papers permute the names. */
  readonly category: number;
  readonly evidence: readonly string[];
  /** When it is asked, in the data set's words; absent: not known. */
  readonly askedAt?: string;
  readonly gold?: GoldKind;
}

/**
 * What the gold answer is, `answer` where nothing is said: an answer; what a good answer takes into account of the user; or why there is
 * none.
 */
export type GoldKind = "answer" | "preference" | "reason";

/** A question as it is put to the model: with the time, where it is known. */
export function askedText({ question, askedAt }: Question): string {
  return askedAt === undefined ? question : `It is ${askedAt}. ${question}`;
}

/** One LoCoMo conversation, as far as memory search needs it. */
export interface LocomoConversation {
  readonly id: string;
  readonly observations: readonly Observation[];
  readonly turns: readonly DialogueTurn[];
  readonly questions: readonly Question[];
}

const NOT_LOCOMO = "not a LoCoMo file";

/** Ids of turns. The published file packs several into one text here and there: `D8:6; D9:17`. */
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

/** Reads a LoCoMo file's JSON. Throws {@link EvaluationError}. */
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

/** The fields that are sessions', by their numbers. */
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

/** One conversation of a file by its id; the first where none is named. Throws {@link EvaluationError}. */
export function pickConversation(conversations: readonly LocomoConversation[], id?: string): LocomoConversation {
  const picked = id === undefined ? conversations[0] : conversations.find((conversation) => conversation.id === id);
  if (picked !== undefined) return picked;
  const ids = conversations.map((conversation) => conversation.id).join(", ");
  throw new EvaluationError(
    id === undefined ? "the file has no conversation" : `no conversation ${id}; there are: ${ids}`,
  );
}

/** A question that is asked, with its place among all of the conversation's. */
export interface AskedQuestion {
  readonly at: number;
  readonly question: Question;
}

/** A conversation with those of its questions that are asked, in the file's order. */
export interface EvaluatedConversation {
  readonly id: string;
  readonly conversation: LocomoConversation;
  readonly asked: readonly AskedQuestion[];
}

/** What of a data file is asked. */
export interface QuestionChoices {
  /** Ids; null: all of them. */
  readonly conversations: readonly string[] | null;
  readonly categories: readonly number[];
  /** First so many questions of each conversation, of these categories; null: all. */
  readonly limit: number | null;
  /** Whether a conversation without a question of these categories is left out, rather than refused. */
  readonly skips?: boolean;
}

/**
 * Picks what is asked. Throws {@link EvaluationError} where nothing is left, a conversation is not there, or has no question of these
 * categories.
 */
export function pickQuestions(
  file: readonly LocomoConversation[],
  { conversations, categories, limit, skips = false }: QuestionChoices,
): readonly EvaluatedConversation[] {
  const picked = conversations === null ? file : conversations.map((id) => pickConversation(file, id));
  if (picked.length === 0) throw new EvaluationError("the file has no conversation");
  const evaluated = picked.flatMap((conversation): EvaluatedConversation[] => {
    const { id } = conversation;
    const asked = conversation.questions
      .map((question, at) => ({ at, question }))
      .filter(({ question }) => categories.includes(question.category));
    if (asked.length === 0 && !skips) {
      throw new EvaluationError(`conversation ${id} has no question of category ${categories.join(", ")}`);
    }
    return asked.length === 0 ? [] : [{ id, conversation, asked: asked.slice(0, limit ?? undefined) }];
  });
  if (evaluated.length === 0) throw new EvaluationError("no question is of these types");
  return evaluated;
}
