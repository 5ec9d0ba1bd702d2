/**
 * The common part of the message types of OpenAI's client, Anthropic's, the AI SDK and others, and of the Responses API's items; validated
 * at run time.
 */
export type MessageLike =
  | { readonly role: string; readonly content?: unknown }
  | { readonly type: string }
  | { readonly id: string };

/** APIs whose messages a request may bring, and gets back. */
export type MessageFormat = "chat" | "responses" | "anthropic";

/** A part of instructions, as Anthropic's API has them. */
export interface InstructionPart {
  readonly type: "text";
  readonly text: string;
}

/** Instructions of an answer whose messages are Anthropic's. */
export type Instructions = string | { type: "text"; text: string }[];
