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
}

/** Picks what is asked. Throws {@link LocomoDataError} where that is nothing, or a conversation is not there. */
export function pickQuestions(
  file: readonly LocomoConversation[],
  { conversations, categories, limit }: QuestionChoices,
): EvaluatedConversation[] {
  const picked = conversations === null ? file : conversations.map((id) => pickConversation(file, id));
  if (picked.length === 0) throw new LocomoDataError("the file has no conversation");
  return picked.map((conversation) => {
    const asked = conversation.questions
      .map((question, at) => ({ at, question }))
      .filter(({ question }) => categories.includes(question.category))
      .slice(0, limit ?? undefined);
    if (asked.length === 0) {
      throw new LocomoDataError(`conversation ${conversation.id} has no question of category ${categories.join(", ")}`);
    }
    return { id: conversation.id, conversation, asked };
  });
}
