import { digestOf } from "./digest.js";
import type { Digest } from "./ids.js";
import { type ChatMessage, countedText, messageDigest } from "./message.js";
import { injectInto, sectionMessage } from "./rendering.js";
import { TOKENS_PER_MESSAGE, type TokenCounter } from "./token-counter.js";
import type { Turn } from "./turn.js";

/** Digest of a prompt without messages. */
const EMPTY_PROMPT = digestOf("");

/**
 * A prompt under construction: messages as they will be sent, with a rolling digest and a token estimate, so that two prompts
 * with equal digests are equal byte for byte.
 */
export class Prompt {
  readonly messages: ChatMessage[] = [];
  #digest: Digest = EMPTY_PROMPT;

  get digest(): Digest {
    return this.#digest;
  }

  push(...messages: readonly ChatMessage[]): void {
    for (const message of messages) {
      this.messages.push(message);
      this.#digest = digestOf(`${this.#digest}${messageDigest(message)}`);
    }
  }
}

/** The messages that one turn adds to a prompt: the given ones, with the section in its place. */
export function turnMessages(
  given: readonly ChatMessage[],
  placement: Turn["placement"],
  section: string,
): readonly ChatMessage[] {
  if (section === "") return given;
  if (placement === "after-tool-result") return [...given, sectionMessage(section)];
  const question = given.at(-1);
  return question === undefined ? [] : [...given.slice(0, -1), injectInto(question, section)];
}

/** Tokens of messages as a chat template would send them, estimated. */
export function messagesTokens(messages: readonly ChatMessage[], countTokens: TokenCounter): number {
  let tokens = 0;
  for (const message of messages) tokens += countTokens(countedText(message)) + TOKENS_PER_MESSAGE;
  return tokens;
}
