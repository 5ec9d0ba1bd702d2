import { blockBounds, type ChatMessage, type ContentPart } from "../../core/index.js";

/** A message's content as parts. Splitting never changes the text: the parts' texts in a row are the message's. */
export function contentParts({ content }: ChatMessage): readonly ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : splitText({ type: "text", text: content });
  if (content === null || content === undefined) return [];
  const [first, ...others] = content;
  return first === undefined ? [] : [...splitText(first), ...others];
}

/** Whether a message's first part is, or will be, injected memories and nothing else. */
export function beginsWithMemories({ content }: ChatMessage): boolean {
  const [first, second] = typeof content === "string" ? [content] : (content ?? []).map((part) => part["text"]);
  if (typeof first !== "string") return false;
  if (blockBounds(first).length > 0) return true;
  // Split before: the rest of the section is in the part behind it.
  return typeof second === "string" && blockBounds(first + second).at(-1) === first.length;
}

/**
 * The memories are a part of their own, for a mark stands at the end of a part, and what follows them (annotations, the question)
 * is another text every turn. It depends on the part's text alone, so a message is split in the same place in every prompt.
 */
function splitText(part: ContentPart): readonly ContentPart[] {
  const text = part["text"];
  if (part.type !== "text" || typeof text !== "string") return [part];
  const end = blockBounds(text).at(-1);
  if (end === undefined || end >= text.length) return [part];
  return [
    { type: "text", text: text.slice(0, end) },
    { ...part, text: text.slice(end) },
  ];
}
