import { type ChatMessage, isInstruction, messageText, sectionAtStart } from "../../core/index.js";

/**
 * The same prompt with its newest memories behind the instructions: the section is taken from the last message, whose text is left, and put
 * to the end of the system message. Cache marks on parts of the last message go with them. Unmodified without a section.
 */
export function memoriesInSystem(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const [first, ...others] = messages;
  const last = others.at(-1);
  if (first === undefined || last === undefined || !isInstruction(first)) return messages;
  const text = textInARow(last);
  const section = sectionAtStart(text);
  if (section === null) return messages;
  return [
    { ...first, content: `${messageText(first)}\n\n${section.trimEnd()}` },
    ...others.slice(0, -1),
    { ...last, content: text.slice(section.length).trimStart() },
  ];
}

/** A mark may stand between the parts of a section. */
function textInARow({ content }: ChatMessage): string {
  if (!Array.isArray(content)) return typeof content === "string" ? content : "";
  return content.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("");
}
