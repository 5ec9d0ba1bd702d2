import { largest } from "../../core/text/lists.js";
import { visibleText } from "../base/visible-text.js";

/** Our own words for a paragraph, a list or a table of Markdown: no character of them is Markdown or HTML. */
export function markdownText(text: string): string {
  return visibleText(text)
    .replace(/[\\`*_[\]|~$]/g, "\\$&")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}

/** Text of others as code, on one line: there it is neither Markdown, HTML, a link nor somebody's name. `(empty)` where there is none. */
export function markdownCode(text: string): string {
  const shown = visibleText(text).trim().replaceAll("|", "\\|");
  if (shown === "") return "(empty)";
  const longest = largest(
    [...shown.matchAll(/`+/g)].map(([run]) => run.length),
    0,
  );
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `${fence}${shown}${fence}` : `${fence} ${shown} ${fence}`;
}
