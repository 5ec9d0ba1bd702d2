import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const json = (value: unknown) => JSON.stringify(value);
const asciiOnly = (text: string) =>
  text.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Ways in which applications quote a text word for word. */
export const VERBATIM: Readonly<Record<string, (text: string) => string>> = {
  "as it is": (text) => text,
  "in JSON": (text) => json({ found: text }),
  "in JSON of ASCII alone, as Python writes it": (text) => asciiOnly(json({ found: text })),
  "with CRLF": (text) => text.replaceAll("\n", "\r\n"),
  "with CRLF, in JSON": (text) => json({ found: text.replaceAll("\n", "\r\n") }),
  "after a backslash": (text) => `\\${text}`,
};

export type Message = Readonly<Record<string, unknown>>;
/** Where in a prompt they quote it. */
export const PLACES: Readonly<Record<string, (quote: string) => readonly Message[]>> = {
  "a question": (quote) => [{ role: "user", content: `Is this right: ${quote}?` }],
  "an answer": (quote) => [
    { role: "user", content: "Tell me." },
    { role: "assistant", content: quote },
    { role: "user", content: "Thanks." },
  ],
  "a part": (quote) => [
    {
      role: "user",
      content: [
        { type: "text", text: "See:" },
        { type: "text", text: quote },
      ],
    },
  ],
  "a tool's result": (quote) => [
    { role: "user", content: "Look." },
    { role: "assistant", content: null, tool_calls: [toolCall("{}")] },
    { role: "tool", tool_call_id: "call_1", content: quote },
  ],
  "a tool's argument": (quote) => [
    { role: "user", content: "Look." },
    { role: "assistant", content: null, tool_calls: [toolCall(quote)] },
    { role: "tool", tool_call_id: "call_1", content: "ok" },
  ],
  "a thought": (quote) => [
    { role: "user", content: "Tell me." },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: quote, signature: "s" },
        { type: "text", text: "Hm." },
      ],
    },
    { role: "user", content: "Thanks." },
  ],
  instructions: (quote) => [
    { role: "system", content: quote },
    { role: "user", content: "Hello." },
  ],
};

function toolCall(args: string) {
  return { id: "call_1", type: "function", function: { name: "note", arguments: args } };
}

/** Every file below a directory. */
export function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Which files of a directory hold one of these texts, in any byte. */
export function filesHolding(directory: string, texts: readonly string[]): string[] {
  return filesIn(directory).filter((file) => {
    const bytes = readFileSync(file);
    return texts.some((text) => bytes.includes(text));
  });
}
