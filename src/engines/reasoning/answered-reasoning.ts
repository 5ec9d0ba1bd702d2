import { append } from "../../core/text/lists.js";
import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";
import {
  ANTHROPIC_BLOCKS,
  type CarriedReasoning,
  callSigned,
  REASONING_NAMES,
  type ReasoningName,
  type Signed,
  textSigned,
} from "./carried-reasoning.js";
import { mergedDetails } from "./reasoning-details.js";

/** What a message or a delta of a chat completion says of its reasoning. */
export interface SaidReasoning {
  readonly text: string;
  readonly names: readonly ReasoningName[];
  readonly details: readonly unknown[];
  readonly blocks: readonly JsonObject[];
}

/** Reads a message's reasoning, or a delta's. Where details stand alone, theirs is the text. */
export function reasoningIn(given: JsonObject): SaidReasoning {
  const names = REASONING_NAMES.filter((name) => text(given[name]) !== "");
  const [first] = names;
  const details = listIn(given["reasoning_details"]);
  const said = first === undefined ? details.map(detailText).join("") : text(given[first]);
  // A name stands for this text, not for another.
  const same = names.filter((name) => given[name] === said);
  return { text: said, names: same, details, blocks: listIn(given[ANTHROPIC_BLOCKS]).map(record) };
}

function detailText(detail: unknown): string {
  const { text: said, summary } = record(detail);
  return text(said) || text(summary);
}

/** Whether there is anything of reasoning beside a text. */
export function isSilent({ text: said, details, blocks }: SaidReasoning): boolean {
  return said === "" && details.length === 0 && blocks.length === 0;
}

/** A run of reasoning, as an answer or its deltas have it. */
export class ReasoningRun {
  text = "";
  readonly #names = new Set<ReasoningName>();
  readonly #details: unknown[] = [];
  readonly #blocks: JsonObject[] = [];

  get isEmpty(): boolean {
    return this.text === "" && this.#details.length === 0 && this.#blocks.length === 0;
  }

  take({ text: said, names, details, blocks }: SaidReasoning): this {
    this.text += said;
    for (const name of names) this.#names.add(name);
    append(this.#details, details);
    append(this.#blocks, blocks);
    return this;
  }

  /** @param withText whether its client may return nothing else */
  carried(withText = false): CarriedReasoning {
    return {
      ...(this.text === "" ? {} : { of: textSigned(this.text) }),
      ...(withText && this.text !== "" ? { text: this.text } : {}),
      ...(this.#names.size === 0 ? {} : { names: [...this.#names] }),
      ...(this.#details.length === 0 ? {} : { details: mergedDetails(this.#details) }),
      ...(this.#blocks.length === 0 ? {} : { blocks: this.#blocks }),
    };
  }
}

/**
 * What stands beside an answer's calls and its text and belongs to them: thought signatures, as Gemini's API has them.
 * Source: https://ai.google.dev/gemini-api/docs/thought-signatures, "OpenAI compatibility"
 */
export class SignedParts {
  #text = "";
  #message: JsonObject | null = null;
  #last = "";
  readonly #calls = new Map<string, { name: string; json: string; fields: JsonObject }>();

  /** Takes a message, or one delta of it. */
  take(given: JsonObject): void {
    this.#text += text(given["content"]);
    if (isSigning("extra_content", given["extra_content"])) this.#message = { extra_content: given["extra_content"] };
    for (const call of listIn(given["tool_calls"])) this.#takeCall(record(call));
  }

  /** Null: nothing is signed. */
  get carried(): CarriedReasoning | null {
    const calls = [...this.#calls].flatMap(([id, { name, json, fields }]): [string, Signed][] =>
      Object.keys(fields).length === 0 ? [] : [[id, { of: callSigned(name, json), fields }]],
    );
    if (calls.length === 0 && this.#message === null) return null;
    return {
      ...(calls.length === 0 ? {} : { calls: Object.fromEntries(calls) }),
      ...(this.#message === null ? {} : { message: { of: textSigned(this.#text), fields: this.#message } }),
    };
  }

  #takeCall(given: JsonObject): void {
    // Later fragments may have no id; they are of the call before.
    this.#last = text(given["id"]) || this.#last;
    const { name, arguments: more } = record(given["function"]);
    const known = this.#calls.get(this.#last) ?? { name: "", json: "", fields: {} };
    const beside = Object.entries(given).filter(([field, value]) => isSigning(field, value));
    this.#calls.set(this.#last, {
      name: known.name || text(name),
      json: known.json + text(more),
      fields: { ...known.fields, ...Object.fromEntries(beside) },
    });
  }
}

/** Whether a field is a thought signature or holds one: `extra_content.google` of Gemini's, gateways' `provider_specific_fields`. */
function isSigning(field: string, value: unknown, levels = 2): boolean {
  if (field === "thought_signature") return text(value) !== "";
  if (levels === 0 || field === "function" || typeof value !== "object") return false;
  return Object.entries(record(value)).some(([name, inner]) => isSigning(name, inner, levels - 1));
}
