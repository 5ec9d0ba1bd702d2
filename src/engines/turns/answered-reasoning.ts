import { append } from "../../core/text/lists.js";
import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";
import { type CalledFunction, signatureIn } from "../upstream/tool-calls.js";
import {
  ANTHROPIC_BLOCKS,
  type CarriedReasoning,
  callSigned,
  mergedDetails,
  REASONING_NAMES,
  type ReasoningName,
  textSigned,
} from "./carried-reasoning.js";

/** What a message or a delta of a chat completion says of its reasoning. */
export interface SaidReasoning {
  readonly text: string;
  readonly names: readonly ReasoningName[];
  /** Whether it is a part of the content. */
  readonly inContent: boolean;
  readonly details: readonly unknown[];
  readonly thinking: readonly unknown[];
  readonly blocks: readonly JsonObject[];
}

/** Reads a message's reasoning, or a delta's. Where details or thinking blocks stand alone, theirs is the text. */
export function reasoningIn(given: JsonObject): SaidReasoning {
  const names = REASONING_NAMES.filter((name) => text(given[name]) !== "");
  const [first] = names;
  const details = listIn(given["reasoning_details"]);
  const inContent = listIn(given["content"]).map(thinkingOf).join("");
  const thinking = listIn(given["thinking_blocks"]);
  const unnamed = inContent || details.map(detailText).join("") || thinking.map(blockText).join("");
  const said = first === undefined ? unnamed : text(given[first]);
  // A name stands for this text, not for another.
  const same = names.filter((name) => given[name] === said);
  const blocks = listIn(given[ANTHROPIC_BLOCKS]).map(record);
  return { text: said, names: same, inContent: inContent !== "" && inContent === said, details, thinking, blocks };
}

/** The text of a message's content, or of a delta's: Mistral's models that reason give parts, of which some are no text. */
export function contentText(content: unknown): string {
  if (!Array.isArray(content)) return text(content);
  return content.map((part) => (record(part)["type"] === "text" ? text(record(part)["text"]) : "")).join("");
}

/** Source: https://docs.mistral.ai/capabilities/reasoning/, `ThinkChunk` */
function thinkingOf(part: unknown): string {
  const { type, thinking } = record(part);
  return type === "thinking" ? contentText(thinking) : "";
}

function blockText(block: unknown): string {
  return text(record(block)["thinking"]);
}

function detailText(detail: unknown): string {
  const { text: said, summary } = record(detail);
  return text(said) || text(summary);
}

/** Whether there is anything of reasoning beside a text. */
export function isSilent({ text: said, details, thinking, blocks }: SaidReasoning): boolean {
  return said === "" && details.length + thinking.length + blocks.length === 0;
}

/** Most characters of a text that is signed; what is longer goes back without signatures. */
export const MOST_SEALED = 4_000_000;

/** A run of reasoning, as an answer or its deltas have it. */
export class ReasoningRun {
  #text = "";
  #characters = 0;
  readonly #names = new Set<ReasoningName>();
  #inContent = false;
  readonly #details: unknown[] = [];
  readonly #thinking: unknown[] = [];
  readonly #blocks: JsonObject[] = [];

  take({ text: said, names, inContent, details, thinking, blocks }: SaidReasoning): this {
    this.#inContent ||= inContent;
    for (const name of names) this.#names.add(name);
    this.#characters += said.length;
    if (this.#characters > MOST_SEALED) return this;
    this.#text += said;
    addMerged(this.#details, details);
    addMerged(this.#thinking, thinking);
    append(this.#blocks, blocks);
    return this;
  }

  /**
   * @param withText whether its client may return nothing else
   * @param offset characters of the message's text in front of it
   */
  carried(withText = false, offset = 0): CarriedReasoning {
    const isWhole = this.#characters <= MOST_SEALED;
    return {
      ...(offset === 0 ? {} : { behind: offset }),
      ...(this.#names.size === 0 ? {} : { names: [...this.#names] }),
      ...(this.#inContent ? { inContent: true } : {}),
      ...(isWhole && this.#text !== "" ? { of: textSigned(this.#text) } : {}),
      ...(isWhole && withText && this.#text !== "" ? { text: this.#text } : {}),
      ...(isWhole && this.#details.length > 0 ? { details: this.#details } : {}),
      ...(isWhole && this.#thinking.length > 0 ? { thinking: this.#thinking } : {}),
      ...(isWhole && this.#blocks.length > 0 ? { blocks: this.#blocks } : {}),
    };
  }
}

function addMerged(known: unknown[], more: readonly unknown[]): void {
  for (const detail of more) {
    const last = known.pop();
    append(known, last === undefined ? [detail] : mergedDetails([last, detail]));
  }
}

/**
 * What stands beside an answer's calls and its text and belongs to them: thought signatures. Null: nothing is signed.
 *
 * @param message the message, or what of it is not its calls
 */
export function signedParts(message: JsonObject, calls: readonly CalledFunction[]): CarriedReasoning | null {
  const ofCalls = calls
    .filter(({ signature }) => Object.keys(signature).length > 0)
    .map(({ id, name, given, signature }) => [id, { of: callSigned(name, given), fields: signature }] as const);
  const { extra_content } = signatureIn(message);
  if (ofCalls.length === 0 && extra_content === undefined) return null;
  const ofText = { of: textSigned(contentText(message["content"])), fields: { extra_content } };
  return {
    ...(ofCalls.length === 0 ? {} : { calls: Object.fromEntries(ofCalls) }),
    ...(extra_content === undefined ? {} : { message: ofText }),
  };
}
