import { type ChatMessage, messageText } from "../../core/index.js";
import { append, keptIn } from "../../core/text/collections.js";

export type Encode = (text: string) => readonly number[];

/** Stand-ins for a chat template's special tokens; no text encodes to them. */
const MESSAGE_START = -1;
const MESSAGE_END = -2;

/**
 * A chat as token ids, ChatML-like: start token, role, text and end token of each message, then the generation prompt. The cache of encoded
 * texts is unbounded: use one function per run, not per process.
 */
export function chatTokenizer(encode: Encode): (messages: readonly ChatMessage[]) => number[] {
  const known = new Map<string, readonly number[]>();
  const encoded = (text: string) => keptIn(known, text, encode);
  return (messages) => {
    const tokens: number[] = [];
    for (const message of messages) {
      tokens.push(MESSAGE_START);
      append(tokens, encoded(`${message.role}\n`));
      for (const token of encoded(messageText(message))) tokens.push(token);
      tokens.push(MESSAGE_END);
    }
    tokens.push(MESSAGE_START);
    append(tokens, encoded("assistant\n"));
    return tokens;
  };
}
