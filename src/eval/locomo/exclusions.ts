import { type LocomoConversation, LocomoDataError } from "./locomo-data.js";

/** Questions that are left out, by {@link exclusionKey}. */
export type Exclusions = ReadonlySet<string>;

export const NOTHING_EXCLUDED: Exclusions = new Set();

export function exclusionKey(conversation: string, question: number): string {
  return JSON.stringify([conversation, question]);
}

/** `conv-26:17 What is it?`; without a place, all questions of the conversation. */
const LINE = /^(\S+?)(?::(\d+))?(?:\s+(.*\S))?\s*$/;

/**
 * Reads a list of questions to leave out: one a line, as the conversation's id, a colon and the question's place in the data file, from 0, or
 * the id alone for all questions of the conversation. What follows behind a space must be the question's text, so that a list for another file
 * is noticed. Empty lines and those that begin with `#` are ignored. Throws {@link LocomoDataError} for a line that names no question.
 */
export function readExclusions(path: string, text: string, conversations: readonly LocomoConversation[]): Exclusions {
  const byId = new Map(conversations.map((conversation) => [conversation.id, conversation]));
  const excluded = new Set<string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const fail = (why: string) => new LocomoDataError(`--exclude ${path}, line ${index + 1}: ${why}`);
    const [, id = "", place, words] = LINE.exec(line) ?? [];
    const conversation = byId.get(id);
    if (conversation === undefined) throw fail(`the data has no conversation ${id || line.trim()}`);
    const { questions } = conversation;
    if (place === undefined) {
      if (words !== undefined) throw fail("has words behind it, which only a single question may have");
      for (const at of questions.keys()) excluded.add(exclusionKey(id, at));
      continue;
    }
    const question = questions[Number(place)];
    if (question === undefined) throw fail(`${id} has ${questions.length} questions, so no question ${place}`);
    if (words !== undefined && words !== question.question.trim()) {
      throw fail(`question ${place} of ${id} is another one: ${JSON.stringify(question.question)}`);
    }
    excluded.add(exclusionKey(id, Number(place)));
  }
  return excluded;
}
