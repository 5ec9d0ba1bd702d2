import { type ChatMessage, memoryTextProblem, messageText, withoutSections } from "../../core/index.js";
import type { NewMemory } from "../../memory/memory-source.js";

/** What an injected section cannot do without; text that still has one of these after whole sections were taken out is not kept. */
const SECTION_TAGS = /<\/?memories>/;

/**
 * An exchange as a memory to be kept: the user's last question and the answer, plain. Null where there is none that can be: no question,
 * or one in which something of an injected section would remain.
 *
 * @param given the client's own messages, not the composed ones
 */
export function exchangeMemory(given: readonly ChatMessage[], answer: string): NewMemory | null {
  const questions = given
    .filter(({ role }) => role === "user")
    .map((message) => withoutSections(messageText(message)).trim())
    // A section can be a message of its own, which clients send back.
    .filter((question) => question !== "");
  const question = questions.at(-1);
  const reply = withoutSections(answer).trim();
  if (question === undefined || reply === "") return null;
  const text = `User: ${question}\nAssistant: ${reply}`;
  if (SECTION_TAGS.test(text) || memoryTextProblem(text) !== null) return null;
  return { text, metadata: { written_back: true } };
}
