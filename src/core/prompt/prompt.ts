/* prompt: messages with rolling digests. Enters: injections, messages, texts by label. Leaves: a prompt, byte-exact at every replay. */

import { append } from "../text/collections.js";
import { type Digest, digestOf } from "../text/ids.js";
import { type ChatMessage, countedText, TOKENS_PER_MESSAGE, type TokenCounter } from "../text/message.js";
import { appendTo, injectInto, isOwnMessage, type SectionPlacement, sectionMessage } from "./section.js";

const EMPTY_PROMPT = digestOf("");

/** What an engine computes a prompt after: another model has another cache, and tools come before the messages. */
export interface PromptRoot {
  /** As the client names it; empty if it does not. */
  readonly model: string;
  /** Null: none. */
  readonly tools: Digest | null;
}

export const NO_ROOT: PromptRoot = { model: "", tools: null };

export interface DigestedMessages {
  readonly messages: readonly ChatMessage[];
  readonly digests: readonly Digest[];
}

/** A prompt under construction. Its rolling digest covers model, tools, plain messages and sections: equal digests, equal bytes. */
export class Prompt {
  readonly messages: ChatMessage[] = [];
  #digest: Digest;

  constructor({ model, tools }: PromptRoot = NO_ROOT) {
    this.#digest = model === "" && tools === null ? EMPTY_PROMPT : digestOf(JSON.stringify([model, tools]));
  }

  get digest(): Digest {
    return this.#digest;
  }

  push({ messages, digests }: DigestedMessages): void {
    append(this.messages, messages);
    this.#digest = digestAfter(this.#digest, digests);
  }

  /** Digest of the prompt before a section that follows, or of the prompt so far. */
  anchorFor(placement: SectionPlacement, hasSection = true, hasLabels = false): Digest {
    return hasSection ? anchorAfter(this.#digest, placement, hasLabels) : this.#digest;
  }

  /** Appends what one turn adds after its {@link anchorFor}: its plain messages with the section in its place. */
  pushTurn({ messages, digests }: DigestedMessages, placement: SectionPlacement, section: string): void {
    if (placement === "in-tool-result" && messages.length === 0) {
      const result = this.messages.pop();
      if (result !== undefined) this.messages.push(appendTo(result, section));
    } else {
      append(this.messages, turnMessages(messages, placement, section));
    }
    this.#digest = digestAfterTurn(this.#digest, digests, placement, section);
  }

  /** Appends a turn that was appended before after the same digest. `after`: the digest that resulted then. */
  pushAgain(messages: readonly ChatMessage[], placement: SectionPlacement, section: string, after: Digest): void {
    append(this.messages, turnMessages(messages, placement, section));
    this.#digest = after;
  }
}

export function digestAfter(prompt: Digest, messages: readonly Digest[]): Digest {
  return messages.reduce((before, digest) => roll(before, digest, ""), prompt);
}

/** The rolling digest after a turn is appended. */
export function digestAfterTurn(
  prompt: Digest,
  given: readonly Digest[],
  placement: SectionPlacement,
  section: string,
): Digest {
  const last = given.at(-1);
  if (placement === "in-question" && last !== undefined)
    return roll(digestAfter(prompt, given.slice(0, -1)), last, section);
  const before = digestAfter(prompt, given);
  if (section === "" || placement === "in-question") return before;
  // A section starts with its tag, so a text and a list of parts never have the same digest.
  const content = placement === "after-tool-result-as-parts" ? `parts${section}` : section;
  return roll(anchorAfter(before, placement), EMPTY_PROMPT, content);
}

/** Digest of the prompt before a section. Sections in the last message, and labelled blocks, share no block with others. */
export function anchorAfter(prompt: Digest, placement: SectionPlacement, hasLabels = false): Digest {
  const form = `${placement === "in-tool-result" ? placement : ""}${hasLabels ? "labelled" : ""}`;
  return form === "" ? prompt : roll(prompt, EMPTY_PROMPT, form);
}

function roll(prompt: Digest, message: Digest, section: string): Digest {
  return digestOf(`${prompt}${message}${section}`);
}

export function turnMessages(
  given: readonly ChatMessage[],
  placement: SectionPlacement,
  section: string,
): readonly ChatMessage[] {
  if (section === "") return given;
  if (isOwnMessage(placement)) return [...given, sectionMessage(section, placement)];
  const last = given.at(-1);
  if (last === undefined) return [];
  const withSection = placement === "in-tool-result" ? appendTo(last, section) : injectInto(last, section);
  return [...given.slice(0, -1), withSection];
}

/** Estimated, with the chat template's. */
export function messagesTokens(messages: readonly ChatMessage[], countTokens: TokenCounter): number {
  let tokens = 0;
  for (const message of messages) tokens += countTokens(countedText(message)) + TOKENS_PER_MESSAGE;
  return tokens;
}

/** Tokens before a turn's section. If the section is inside the last message, that message's end counts with the section. */
export function tokensBeforeSection(
  messages: readonly ChatMessage[],
  placement: SectionPlacement,
  hasSection: boolean,
  countTokens: TokenCounter,
): number {
  const tokens = messagesTokens(messages, countTokens);
  const isOpen = hasSection && placement === "in-tool-result" && messages.length > 0;
  return isOpen ? tokens - TOKENS_PER_MESSAGE : tokens;
}
