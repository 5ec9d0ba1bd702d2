import { type ChatMessage, messageText, parseSection, sectionAtStart } from "../../core/index.js";

/** Labels that annotations name, and how many of them a reader of the prompt finds. */
export interface References {
  readonly references: number;
  readonly referencesResolved: number;
}

const LABEL = /\[(\d+)\]/g;

/**
 * Checks a prompt as its reader would: every label that its own annotations name must stand before a memory in the messages that the
 * engine gets. Labels of earlier turns' annotations were counted with those turns' prompts.
 */
export function countReferences(annotations: readonly string[], messages: readonly ChatMessage[]): References {
  const named = annotations.flatMap((line) => [...line.matchAll(LABEL)].map(([, digits]) => Number(digits)));
  if (named.length === 0) return { references: 0, referencesResolved: 0 };
  const there = new Set(messages.flatMap(labelsIn));
  return { references: named.length, referencesResolved: named.filter((label) => there.has(label)).length };
}

/** Labels of the memories that stand in a message, in their order. */
export function labelsIn(message: ChatMessage): readonly number[] {
  const section = sectionAtStart(sectionText(message));
  return section === null ? [] : (parseSection(section)?.blocks.map(({ label }) => label) ?? []);
}

/** Some engines' marks stand between the parts of a message, within a section too; its text is that of the parts in a row. */
function sectionText(message: ChatMessage): string {
  if (!Array.isArray(message.content)) return messageText(message);
  return message.content.map((part) => (typeof part["text"] === "string" ? part["text"] : "")).join("");
}
