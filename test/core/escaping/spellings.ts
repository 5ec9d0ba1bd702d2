import fc from "fast-check";
import type { ChatMessage } from "../../../src/core/text/message.js";

/*
 * Messages by what they mean, and the ways in which clients write one: what is told apart here must be told apart, and nothing else.
 */

/** What is said, however it is written. */
export type Meaning =
  | { readonly kind: "text"; readonly role: "user" | "assistant"; readonly text: string; readonly name: string | null }
  | {
      readonly kind: "calls";
      readonly text: string;
      readonly calls: readonly { readonly id: string; readonly value: unknown }[];
    }
  | { readonly kind: "result"; readonly id: string; readonly text: string };

/** How a client writes it. */
export interface Spelling {
  readonly asPart: boolean;
  readonly nulls: boolean;
  readonly padding: string;
  readonly crlf: boolean;
  readonly thought: boolean;
  readonly marked: boolean;
  readonly spacedJson: boolean;
  readonly sortedJson: boolean;
}

const word = fc.constantFrom("a", "b", "café", "x y", "1", "n1", "s", '"', "\\");
/** Trimmed: white space at the ends is a matter of spelling. */
const text = fc.array(word, { minLength: 1, maxLength: 3 }).map((words) => words.join("\n"));
const value: fc.Arbitrary<unknown> = fc.dictionary(
  fc.constantFrom("a", "b", "1"),
  fc.oneof(fc.constantFrom<unknown>(1, 0, -2.5, "1", "n1", true, null, [], [1, 2], [2, 1], { a: 1 }), word),
  { maxKeys: 3, noNullPrototype: true },
);
/** With its fields in order, so that equal meanings are equal JSON. */
const sorted = (record: unknown): unknown => {
  if (Array.isArray(record) || typeof record !== "object" || record === null) return record;
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
};

export const anyMeaning: fc.Arbitrary<Meaning> = fc.oneof(
  fc.record({
    kind: fc.constant("text" as const),
    role: fc.constantFrom("user" as const, "assistant" as const),
    text,
    name: fc.constantFrom(null, "ada"),
  }),
  fc.record({
    kind: fc.constant("calls" as const),
    text: fc.oneof(fc.constant(""), text),
    calls: fc.array(fc.record({ id: fc.constantFrom("c1", "c2"), value: value.map(sorted) }), {
      minLength: 1,
      maxLength: 2,
    }),
  }),
  fc.record({ kind: fc.constant("result" as const), id: fc.constantFrom("c1", "c2"), text }),
);

export const anySpelling: fc.Arbitrary<Spelling> = fc.record({
  asPart: fc.boolean(),
  nulls: fc.boolean(),
  padding: fc.constantFrom("", " ", "\n", "\r\n\t"),
  crlf: fc.boolean(),
  thought: fc.boolean(),
  marked: fc.boolean(),
  spacedJson: fc.boolean(),
  sortedJson: fc.boolean(),
});

/** A message as a client would write it. */
export function said(meaning: Meaning, spelling: Spelling): ChatMessage {
  const { asPart, nulls, padding, crlf, thought, marked } = spelling;
  const plain = `${padding}${crlf ? meaning.text.replaceAll("\n", "\r\n") : meaning.text}${padding}`;
  const part = { type: "text", text: plain, ...(marked ? { cache_control: { type: "ephemeral" } } : {}) };
  const content = asPart ? [part, ...(nulls ? [{ type: "text", text: "" }] : [])] : plain;
  const empty = nulls ? { refusal: null, audio: null, annotations: [], function_call: null } : {};
  if (meaning.kind === "result")
    return { role: "tool", tool_call_id: meaning.id, content, ...(nulls ? { name: null } : {}) };
  if (meaning.kind === "text") {
    const { role, name } = meaning;
    const named = name === null ? (nulls ? { name } : {}) : { name };
    return {
      role,
      content,
      ...named,
      ...(role === "assistant" ? { ...empty, ...(nulls ? { tool_calls: [] } : {}) } : {}),
    };
  }
  return {
    role: "assistant",
    content: meaning.text === "" && !asPart ? null : content,
    ...empty,
    ...(thought ? { reasoning_content: "Let me look." } : {}),
    tool_calls: meaning.calls.map(({ id, value: given }, index) => ({
      ...(nulls ? { index } : { type: "function" }),
      id,
      function: { name: "look_up", arguments: writtenArguments(given, spelling) },
    })),
  };
}

function writtenArguments(given: unknown, { spacedJson, sortedJson }: Spelling): string {
  const entries = Object.entries(given as object);
  const ordered = Object.fromEntries(sortedJson ? entries : entries.reverse());
  return JSON.stringify(ordered, null, spacedJson ? 2 : 0);
}
