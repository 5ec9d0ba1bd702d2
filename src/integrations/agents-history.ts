import { SectionScan } from "../core/prompt/section-scan.js";
import type { AgentsItem } from "./agents-items.js";

/** Between a section and the message's own text. */
const GLUE = "\n\n";

/**
 * Items as they were before memories were put in front of a user's words: what a session was given to keep comes back without them. An item
 * that is not ours stays the same object.
 */
export function plainItems<Item extends AgentsItem>(items: readonly Item[]): readonly Item[] {
  return items.map(plainItem);
}

function plainItem<Item extends AgentsItem>(item: Item): Item {
  const { role, content }: { readonly role?: unknown; readonly content?: unknown } = item;
  if (role !== "user") return item;
  const plain = typeof content === "string" ? withoutSection(content) : plainParts(content);
  return plain === content ? item : { ...item, content: plain };
}

/** Parts without the section in front: a part of its own, or, where a store made one part of a text, the beginning of one. */
function plainParts(content: unknown): unknown {
  if (!Array.isArray(content)) return content;
  const [first, ...others] = content as readonly unknown[];
  const { text }: { readonly text?: unknown } = typeof first === "object" && first !== null ? first : {};
  if (typeof text !== "string") return content;
  if (others.length > 0 && sectionEnd(text) === text.length) return others;
  const plain = withoutSection(text);
  return plain === text ? content : [{ ...(first as object), text: plain }, ...others];
}

/** A text without the section that it begins with, and only where words of its own follow. */
function withoutSection(text: string): string {
  const end = sectionEnd(text);
  return end > 0 && text.startsWith(GLUE, end) ? text.slice(end + GLUE.length) : text;
}

/** Where the section ends that a text begins with; -1 for none. */
function sectionEnd(text: string): number {
  return new SectionScan(text).endFrom(0);
}
