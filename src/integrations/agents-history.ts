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
  if (typeof content === "string") {
    const end = sectionEnd(content);
    return end > 0 && content.startsWith(GLUE, end) ? { ...item, content: content.slice(end + GLUE.length) } : item;
  }
  if (!Array.isArray(content) || content.length < 2) return item;
  const [first, ...own] = content as readonly unknown[];
  const { text }: { readonly text?: unknown } = typeof first === "object" && first !== null ? first : {};
  return typeof text === "string" && sectionEnd(text) === text.length ? { ...item, content: own } : item;
}

/** Where the section ends that a text begins with; -1 for none. */
function sectionEnd(text: string): number {
  return new SectionScan(text).endFrom(0);
}
