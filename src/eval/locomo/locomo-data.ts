/*
 * LoCoMo as a source of questions: its data file, its memories in Mem0, and what Mem0's search found for each question.
 *
 * Enters: a file in LoCoMo's format, and a memory source.
 * Leaves: conversations with the questions to ask, the memories kept of them, and recorded searches, which every arm of a run shares.
 * What was ingested or searched is written at once, so that a resumed run repeats neither.
 */

import { z } from "zod";

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

/** The file is not LoCoMo's format, or does not have what was asked for. */
export class LocomoDataError extends Error {
  override readonly name = "LocomoDataError";
}

const evidence = z.union([z.string(), z.array(z.string())]).transform((ids) => (typeof ids === "string" ? [ids] : ids));
const sample = z.looseObject({
  sample_id: z.string(),
  conversation: z.record(z.string(), z.unknown()),
  observation: z.record(z.string(), z.record(z.string(), z.array(z.tuple([z.string(), evidence]).rest(z.unknown())))),
  qa: z.array(
    z.looseObject({
      question: z.string(),
      answer: z.union([z.string(), z.number()]).optional(),
      category: z.int(),
      evidence: z.array(z.string()).default([]),
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

/** Reads a LoCoMo file's JSON. Throws {@link LocomoDataError}. */
export function readLocomo(json: unknown): LocomoConversation[] {
  const parsed = z.array(sample).safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new LocomoDataError(
      `not a LoCoMo file: ${issue?.path.join(".") || "the whole"}: ${issue?.message ?? "is not valid"}`,
    );
  }
  return parsed.data.map(({ sample_id, conversation, observation, qa }) => ({
    id: sample_id,
    observations: Object.entries(observation)
      .map(([key, speakers]) => ({ session: Number(/^session_(\d+)_observation$/.exec(key)?.[1]), speakers }))
      .filter(({ session }) => Number.isInteger(session))
      .sort((a, b) => a.session - b.session)
      .flatMap(({ session, speakers }) =>
        Object.entries(speakers).flatMap(([speaker, facts]) =>
          facts.map(([text, ids]) => ({
            text,
            speaker,
            session,
            sessionTime: String(conversation[`session_${session}_date_time`] ?? ""),
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
  }));
}

function turnsOf(id: string, conversation: Readonly<Record<string, unknown>>): DialogueTurn[] {
  return Object.entries(conversation)
    .map(([key, said]) => ({ session: Number(/^session_(\d+)$/.exec(key)?.[1]), said }))
    .filter(({ session }) => Number.isInteger(session))
    .sort((a, b) => a.session - b.session)
    .flatMap(({ session, said }) => {
      const read = sessionTurns.safeParse(said);
      if (!read.success) {
        const [issue] = read.error.issues;
        const at = [id, "conversation", `session_${session}`, ...(issue?.path ?? [])].join(".");
        throw new LocomoDataError(`not a LoCoMo file: ${at}: ${issue?.message ?? "is not valid"}`);
      }
      return read.data.map(({ dia_id, speaker, text, blip_caption }) => ({
        id: dia_id,
        speaker,
        text: blip_caption === undefined ? text : `${text} (shares ${blip_caption})`.trim(),
        session,
        sessionTime: String(conversation[`session_${session}_date_time`] ?? ""),
      }));
    });
}

/** One conversation of a file by its id; the first where none is named. Throws {@link LocomoDataError}. */
export function pickConversation(conversations: readonly LocomoConversation[], id?: string): LocomoConversation {
  const picked = id === undefined ? conversations[0] : conversations.find((conversation) => conversation.id === id);
  if (picked !== undefined) return picked;
  const ids = conversations.map((conversation) => conversation.id).join(", ");
  throw new LocomoDataError(
    id === undefined ? "the file has no conversation" : `no conversation ${id}; there are: ${ids}`,
  );
}
