import { type ChatMessage, messageText } from "../text/message.js";
import { withoutSections } from "./section-scan.js";

const USER = "User: ";

/** Whether a text may be an exchange. */
export function isExchange(text: string): boolean {
  return text.startsWith(USER);
}

/** A user's question and the answer to it as one text, as it is written back; without what memstem injected. Null without either. */
export function exchangeText(question: string | undefined, answer: string): string | null {
  const reply = plainText(answer);
  return question === undefined || reply === "" ? null : `${USER}${question}\nAssistant: ${reply}`;
}

/** The last question that a user asks in these messages; undefined for none. */
export function lastAsked(messages: readonly ChatMessage[]): string | undefined {
  // Clients may send a section back that was a message of its own.
  return messages.flatMap(askedIn).at(-1);
}

/** The texts of all exchanges in a history. */
export function exchangesIn(messages: readonly ChatMessage[]): string[] {
  let question: string | undefined;
  return messages.flatMap((message) => {
    question = askedIn(message).at(-1) ?? question;
    return message.role === "assistant" ? (exchangeText(question, messageText(message)) ?? []) : [];
  });
}

function askedIn(message: ChatMessage): readonly string[] {
  if (message.role !== "user") return [];
  const question = plainText(messageText(message));
  return question === "" ? [] : [question];
}

function plainText(text: string): string {
  return withoutSections(text).trim();
}
