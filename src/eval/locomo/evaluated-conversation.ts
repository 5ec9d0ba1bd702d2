import { type Exclusions, exclusionKey } from "./exclusions.js";
import { type LocomoConversation, LocomoDataError, pickConversation, type Question } from "./locomo-data.js";

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
  readonly excluded: Exclusions;
  /** Whether a conversation without a question of these categories is left out, rather than refused. */
  readonly skips?: boolean;
}

/** What is asked, and how many questions of these conversations and categories a list left out. */
export interface PickedQuestions {
  readonly conversations: readonly EvaluatedConversation[];
  readonly excludedQuestions: number;
}

/**
 * Picks what is asked; a conversation of which everything is excluded is not. Throws {@link LocomoDataError} where nothing is left, a
 * conversation is not there, or has no question of these categories.
 */
export function pickQuestions(
  file: readonly LocomoConversation[],
  { conversations, categories, limit, excluded, skips = false }: QuestionChoices,
): PickedQuestions {
  const picked = conversations === null ? file : conversations.map((id) => pickConversation(file, id));
  if (picked.length === 0) throw new LocomoDataError("the file has no conversation");
  let excludedQuestions = 0;
  const evaluated = picked.flatMap((conversation): EvaluatedConversation[] => {
    const { id } = conversation;
    const known = conversation.questions
      .map((question, at) => ({ at, question }))
      .filter(({ question }) => categories.includes(question.category));
    if (known.length === 0 && !skips) {
      throw new LocomoDataError(`conversation ${id} has no question of category ${categories.join(", ")}`);
    }
    const left = known.filter(({ at }) => !excluded.has(exclusionKey(id, at)));
    excludedQuestions += known.length - left.length;
    return left.length === 0 ? [] : [{ id, conversation, asked: left.slice(0, limit ?? undefined) }];
  });
  if (evaluated.length === 0) {
    throw new LocomoDataError(excludedQuestions > 0 ? "every question is excluded" : "no question is of these types");
  }
  return { conversations: evaluated, excludedQuestions };
}
