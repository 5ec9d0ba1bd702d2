import type { ChatMessage } from "../../src/core/index.js";

/** What memprefix puts in front of a message's text: blocks between tags, lines after them, and the empty line before the text. */
export const SECTION =
  /<memories>\n(?:.*?\n)?<\/memories>(?:\n(?:Most|No longer|Current|Also) [^\n]*(?:\n {2}[^\n]*)*)*(?:\n\n)?/s;

/** A prompt less what memprefix put in. */
export function bare(prompt: readonly ChatMessage[]): readonly ChatMessage[] {
  return prompt.flatMap((message) => {
    const { content } = message;
    if (typeof content === "string") {
      const rest = content.replace(SECTION, "");
      return rest === "" && content !== "" ? [] : [{ ...message, content: rest }];
    }
    if (!Array.isArray(content)) return [message];
    const parts = content.filter((one) => typeof one["text"] !== "string" || !SECTION.test(one["text"]));
    return parts.length === 0 ? [] : [{ ...message, content: parts }];
  });
}
