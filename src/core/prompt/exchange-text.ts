import { type ChatMessage, messageText } from "../text/message.js";
import { withoutSections } from "./section-scan.js";

const USER = "User: ";
const ASSISTANT = "\nAssistant: ";
/** Ways to take an exchange apart that are tried: its question may have the words of its answer's beginning. */
const MOST_PARTINGS = 8;

/** Whether a text may be an exchange. */
export function isExchange(text: string): boolean {
  return text.startsWith(USER);
}

/** A user's question and the answer to it as one text, as it is written back; without what memstem injected. Null without either. */
export function exchangeText(question: string | undefined, answer: string): string | null {
  const reply = plainText(answer);
  return question === undefined || reply === "" ? null : `${USER}${question}${ASSISTANT}${reply}`;
}

/** The question and the answer of an exchange, in every way in which it can be taken apart; none of another text. */
export function exchangeParts(text: string): readonly { readonly question: string; readonly answer: string }[] {
  if (!isExchange(text)) return [];
  const pieces = text.slice(USER.length).split(ASSISTANT, MOST_PARTINGS + 1);
  return pieces.slice(1).map((_piece, at) => ({
    question: pieces.slice(0, at + 1).join(ASSISTANT),
    answer: text.slice(USER.length + pieces.slice(0, at + 1).join(ASSISTANT).length + ASSISTANT.length),
  }));
}

/** A user's last question in these messages; undefined for none. */
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
