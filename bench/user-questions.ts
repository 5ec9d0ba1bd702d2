import { encodeO200k } from "../src/cli/o200k.js";
import type { ChatMessage } from "../src/core/index.js";
import { chatTokenizer } from "../src/eval/base/chat-tokens.js";
import { INSTRUCTION } from "../src/eval/base/hand-built.js";
import { type ComposeRequest, readComposeOptions } from "../src/service/compose/compose-request.js";
import { RECORDED_CONVERSATIONS, readRecordedTrace } from "../test/eval/locomo/recorded-searches.js";
import { inTurn } from "../test/eval/locomo/shared-cache.js";

/** First so many questions of each user. */
const LIMIT = 150;

/** One user's question, as the service takes it. */
export interface UserQuestion {
  readonly user: number;
  readonly request: ComposeRequest;
}

/**
 * The questions of six users in turn, each with its first k recorded memories: question 1 of each user, question 2 of each, …. The users
 * are six LoCoMo conversations with recorded real Mem0 searches; their questions are single prompts.
 *
 * @param data the folder of recorded searches
 */
export function userQuestions(data: string, k: number): readonly UserQuestion[] {
  const users = RECORDED_CONVERSATIONS.map((name, user) => {
    const { memories, questions } = readRecordedTrace(data, name);
    return questions.slice(0, LIMIT).map(({ question, retrieved }): UserQuestion => {
      const found = retrieved.slice(0, k).map((at) => ({ id: String(at), memory: memories[at]?.memory ?? "" }));
      const asked = { userId: `user ${user}`, system: INSTRUCTION, query: question, memories: found };
      return { user, request: readComposeOptions(asked) };
    });
  });
  return [...inTurn(users)];
}

/** A prompt's tokens; one encoder for all. */
export const promptTokens: (messages: readonly ChatMessage[]) => readonly number[] = chatTokenizer(encodeO200k);
