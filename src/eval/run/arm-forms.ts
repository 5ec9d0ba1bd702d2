import type { ChatMessage } from "../../core/index.js";
import type { ArmForm } from "../base/run-record.js";

/** A memory's line, from its label and its text as memstem writes them. */
const LINE: Readonly<Record<ArmForm, string>> = {
  numbers: "$1 $2",
  brackets: "[$1] $2",
  bullets: "- $2",
  plain: "$2",
};

/** Whether a form has what annotations refer to. */
export function hasLabels(form: ArmForm | null): boolean {
  return form === null || LINE[form].includes("$1");
}

/** The same prompt with its memories written in another form, those of earlier turns too; for null unmodified. */
export function inForm(messages: readonly ChatMessage[], form: ArmForm | null): readonly ChatMessage[] {
  if (form === null) return messages;
  const written = (text: string) =>
    text.replace(/<memories>\n.*?<\/memories>/gs, (section) => section.replace(/^(\d+) (.*)$/gm, LINE[form]));
  return messages.map((message) => {
    const { content } = message;
    if (typeof content === "string") return { ...message, content: written(content) };
    if (!Array.isArray(content)) return message;
    const parts = content.map((part) =>
      typeof part["text"] === "string" ? { ...part, text: written(part["text"]) } : part,
    );
    return { ...message, content: parts };
  });
}
