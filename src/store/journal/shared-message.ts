import { type ChatMessage, type Digest, digestOf, messageDigest } from "../../core/index.js";
import { DamagedRecordError } from "./damaged-record.js";

/**
 * In a record, in place of a message that stands in a row of its own: all turns of a scope that were given it refer to that row. A row that
 * is not there was erased.
 */
export class SharedMessage {
  /** @param key see {@link sharedKey} */
  constructor(readonly key: Digest) {}
}

/** A message as a record has it; null: erased. */
export type RecordedMessage = ChatMessage | SharedMessage | null;

/**
 * The key of a message's row: equal keys, equal JSON. Of a plain message that is the digest by which turns know it. That digest leaves the
 * order of fields open, in which a message is sent again, so all others have one of their JSON. What is hashed differs in its first
 * character from what a message's digest is of (`{`) and from what that of instructions is of (a digest, or nothing).
 */
export function sharedKey(message: ChatMessage, digest = messageDigest(message)): Digest {
  return isPlain(message) ? digest : digestOf(`as given: ${JSON.stringify(message)}`);
}

/** Its row's JSON; that of instructions is a list. */
export function writeShared(message: ChatMessage): string {
  return JSON.stringify(message);
}

/** Throws `DamagedRecordError` where the row has another message than its key says. */
export function readShared(key: Digest, json: string): ChatMessage {
  const [message = null, ...others] = messagesInRow(json);
  if (message === null || others.length > 0 || sharedKey(message) !== key)
    throw new DamagedRecordError("a shared message: not what its digest says");
  return message;
}

/** The messages of a row: instructions, null for each that was erased, or one message. */
export function messagesInRow(json: string): readonly (ChatMessage | null)[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // The parser's message quotes the text.
    throw new DamagedRecordError("a shared row: not valid JSON");
  }
  return (Array.isArray(value) ? value : [value]) as readonly (ChatMessage | null)[];
}

/** Whether a row is of instructions. */
export function isInstructions(json: string): boolean {
  return json.startsWith("[");
}

function isPlain(message: ChatMessage): boolean {
  const [first, second, ...others] = Object.keys(message);
  return first === "role" && second === "content" && others.length === 0 && typeof message.content === "string";
}
