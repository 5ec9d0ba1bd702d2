import { append } from "../text/collections.js";
import { digestOf, type MemoryId } from "../text/ids.js";
import { foundTextProblem } from "../text/memory-text.js";
import { type ChatMessage, instructionsAtHead } from "../text/message.js";
import type { RetrievedMemory } from "./context-block.js";

/*
 * Mem0's AI SDK provider puts the memories that it found in the first system message of every prompt, which changes its first bytes on every turn.
 * Its form:
 *
 *   message  = preamble memory *( LF LF memory ) [ SP ]
 *   memory   = "Memory: " text LF LF
 *
 * The final space marks the provider's own message. `retrieveMemories` gives none: there a text with a blank line may be the application's.
 * Source: `processMemories` and `retrieveMemories` of `@mem0/vercel-ai-provider` 3.0.2
 */

const PREAMBLE =
  "System Message: These are the memories I have stored. Give more weightage to the question by users and try to answer that first. " +
  "You have to modify your answer based on the memories I have provided. If the memories are irrelevant you can ignore them. " +
  "Also don't reply to this section of the prompt, or the memories, they are only for your reference. " +
  "The System prompt starts after text System Message: \n\n ";
const LABEL = "Memory: ";
const END = "\n\n";
const BETWEEN = `${END}\n\n${LABEL}`;
/** Maximum memories of one message; Mem0's default is 10. */
const MOST = 1_000;

/** Moves Mem0's memories out of the instructions at the front of a prompt, best first; null: none. Their ids are digests. Linear time. */
export function withoutProviderMemories(messages: readonly ChatMessage[]) {
  const texts: string[] = [];
  const head = instructionsAtHead(messages);
  const kept = messages.slice(0, head).flatMap((message): ChatMessage[] => {
    const taken = takenFrom(message);
    if (taken === null) return [message];
    append(texts, taken.texts);
    return taken.rest === null ? [] : [taken.rest];
  });
  if (texts.length === 0) return { messages, memories: null };
  const memories = texts.map((text): RetrievedMemory => ({ id: `text:${digestOf(text)}` as MemoryId, text }));
  return { messages: [...kept, ...messages.slice(head)], memories };
}

function takenFrom(
  message: ChatMessage,
): { readonly texts: readonly string[]; readonly rest: ChatMessage | null } | null {
  const { content } = message;
  if (typeof content === "string") {
    const texts = memoryTexts(content);
    return texts && { texts, rest: null };
  }
  const [first, ...others] = content ?? [];
  const texts = first?.type === "text" && typeof first["text"] === "string" ? memoryTexts(first["text"]) : null;
  return texts && { texts, rest: others.length === 0 ? null : { ...message, content: others } };
}

/** Null for a text in another form. */
function memoryTexts(text: string): readonly string[] | null {
  if (!text.startsWith(PREAMBLE + LABEL)) return null;
  const isOwnMessage = text.endsWith(`${END} `);
  if (!isOwnMessage && !text.endsWith(END)) return null;
  const end = text.length - END.length - (isOwnMessage ? 1 : 0);
  const from = PREAMBLE.length + LABEL.length;
  if (end < from) return null;
  const texts = text.slice(from, end).split(BETWEEN);
  if (texts.length > MOST || (!isOwnMessage && texts.some((one) => one.includes("\n\n")))) return null;
  const said = texts.filter((one) => foundTextProblem(one) === null);
  return said.length === 0 ? null : said;
}
