import { visibleText } from "../base/visible-text.js";

/** A piece of HTML or SVG that is safe as it stands. Made by {@link markup}, or of our own constants: no text of others gets there unescaped. */
export class Markup {
  constructor(readonly source: string) {}
}

/** What a template may hold: text and numbers, which are escaped; pieces, which are not; several of them; nothing. */
export type MarkupPart = string | number | Markup | readonly MarkupPart[] | null;

/** A template of HTML or SVG. Whatever is put in is escaped for text and for double-quoted attributes, unless it is markup already. */
export function markup(strings: TemplateStringsArray, ...parts: readonly MarkupPart[]): Markup {
  return new Markup(strings.map((string, at) => string + sourceOf(parts[at] ?? null)).join(""));
}

function sourceOf(part: MarkupPart): string {
  if (part === null) return "";
  if (part instanceof Markup) return part.source;
  if (typeof part === "number") return String(part);
  if (typeof part === "string") return escaped(part);
  return part.map(sourceOf).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return visibleText(text).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
