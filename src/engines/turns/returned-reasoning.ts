import type { ChatMessage } from "../../core/index.js";
import { append } from "../../core/text/lists.js";
import { type JsonObject, record, text } from "../upstream/json-values.js";
import { contentText } from "./answered-reasoning.js";
import {
  ANTHROPIC_BLOCKS,
  type CarriedReasoning,
  callSigned,
  mergedDetails,
  type ReasoningName,
  type Signed,
  signsNothing,
  textSigned,
} from "./carried-reasoning.js";

/**
 * The reasoning of one assistant's message as its client returned it, as fields of a chat completion's message. A signature goes back with
 * what it was made for, and with nothing else: where a text or a call was changed, the text goes without it.
 */
export class ReturnedReasoning {
  #text = "";
  #isAsGiven = true;
  #inContent = false;
  readonly #names = new Set<ReasoningName>();
  readonly #details: unknown[] = [];
  readonly #thinking: unknown[] = [];
  readonly #blocks: JsonObject[] = [];
  readonly #calls = new Map<string, Signed>();
  #message: Signed | null = null;

  /**
   * Takes the next piece.
   *
   * @param said its text; null: the client returned none
   * @param carried what was sealed with it; null: nothing, or it is another's
   */
  take(said: string | null, carried: CarriedReasoning | null): void {
    const own = said ?? carried?.text ?? "";
    const isIntact = carried === null ? own === "" : carried.of === undefined || carried.of === textSigned(own);
    this.#text += own;
    for (const name of carried?.names ?? []) this.#names.add(name);
    this.#inContent ||= carried?.inContent === true;
    this.#isAsGiven &&= isIntact;
    if (carried === null) return;
    if (isIntact) {
      append(this.#details, carried.details ?? []);
      append(this.#thinking, carried.thinking ?? []);
      append(this.#blocks, carried.blocks ?? []);
    }
    for (const [id, signed] of Object.entries(carried.calls ?? {})) this.#calls.set(id, signed);
    this.#message = carried.message ?? this.#message;
  }

  /**
   * The message's fields beside its text and its calls; also its content where that has the reasoning.
   *
   * @param content the message's own text
   */
  fields(content: ChatMessage["content"]): JsonObject {
    const details = this.#isAsGiven ? mergedDetails(this.#details).filter((detail) => !signsNothing(detail)) : [];
    const thinking = this.#isAsGiven ? this.#thinking : [];
    const isInDetails = details.length + thinking.length > 0 && this.#names.size === 0;
    const isUnnamed = isInDetails || this.#inContent;
    const names = this.#names.size > 0 ? [...this.#names] : isUnnamed ? [] : [DEFAULT_NAME];
    const whole = contentText(content);
    const isSigned = this.#message !== null && this.#message.of === textSigned(whole);
    return {
      ...(this.#inContent && this.#text !== "" ? { content: partsOf(this.#text, whole) } : {}),
      ...(this.#text === "" ? {} : Object.fromEntries(names.map((name) => [name, this.#text]))),
      ...(details.length === 0 ? {} : { reasoning_details: details }),
      ...(thinking.length === 0 ? {} : { thinking_blocks: thinking }),
      ...(this.#blocks.length === 0 ? {} : { [ANTHROPIC_BLOCKS]: this.#blocks }),
      ...(isSigned ? { extra_content: this.#message?.fields["extra_content"] } : {}),
    };
  }

  /** A tool call of the message, with what the engine gave beside it. */
  withSignature<T extends JsonObject>(call: T): T {
    const { name, arguments: json } = record(call["function"]);
    const signed = this.#calls.get(text(call["id"]));
    return signed === undefined || signed.of !== callSigned(text(name), json) ? call : { ...signed.fields, ...call };
  }
}

function partsOf(thought: string, said: string): readonly JsonObject[] {
  const thinking = { type: "thinking", thinking: [{ type: "text", text: thought }] };
  return said === "" ? [thinking] : [thinking, { type: "text", text: said }];
}

/** Of reasoning that no engine of this API's gave: the name that most of them take. */
const DEFAULT_NAME: ReasoningName = "reasoning_content";
