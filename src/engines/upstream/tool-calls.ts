import { digestOf } from "../../core/index.js";
import { type JsonObject, listIn, record, text } from "./json-values.js";

/** A call of one of the client's functions. */
export interface CalledFunction {
  /** Names the call in its result; never empty. */
  readonly id: string;
  /** Never empty. */
  readonly name: string;
  /** Its arguments as JSON, as the model wrote them; an object where it wrote none. */
  readonly given: string;
  /** Fields beside the function that sign it; empty where there are none. */
  readonly signature: JsonObject;
}

/**
 * The calls of a chat completion's message, those in OpenAI's older form (`function_call`) included. What names no function is none. A call
 * without an id, or with that of another, gets one of its own, as clients answer by it.
 *
 * @param seed a text that no other answer has, from which ids are made; engines' own ids of answers may come again
 */
export function callsIn(message: JsonObject, seed: string): readonly CalledFunction[] {
  const ids = new CallIds(seed);
  return callFields(message)
    .filter(({ name }) => name !== "")
    .map(({ id, name, given, signature }) => ({ id: ids.of(id), name, given: wholeArguments(given), signature }));
}

/** The fields of a call, or of a fragment of one. */
export interface CallFields {
  /** Null where there is none. */
  readonly index: number | null;
  /** Empty where there is none. */
  readonly id: string;
  /** Empty where there is none. */
  readonly name: string;
  readonly given: string;
  /** Fields beside the function that sign it; empty where there are none. */
  readonly signature: JsonObject;
}

/** The calls of a message, or the fragments of calls in a chunk of it, in their order; unchecked. */
export function callFields({ tool_calls: calls, function_call: older }: JsonObject): readonly CallFields[] {
  const newer = listIn(calls);
  // Some engines say the same in both forms.
  const all = newer.length > 0 || older == null ? newer : [{ function: older }];
  return all.map((call) => {
    const { index, id, function: called } = record(call);
    const { name, arguments: given } = record(called);
    const signature = signatureIn(record(call));
    return { index: indexOf(index), id: idOf(id), name: text(name), given: argumentsOf(given), signature };
  });
}

/**
 * The fields that are a thought signature or hold one: `extra_content` of Gemini's, gateways' `provider_specific_fields`.
 * Source: https://ai.google.dev/gemini-api/docs/thought-signatures, "OpenAI compatibility"
 */
export function signatureIn(given: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([field, value]) => isSigning(field, value, 2)));
}

function isSigning(field: string, value: unknown, levels: number): boolean {
  if (field === "thought_signature") return text(value) !== "";
  if (levels === 0 || field === "function" || typeof value !== "object") return false;
  return Object.entries(record(value)).some(([name, inner]) => isSigning(name, inner, levels - 1));
}

/** Ids of one answer's calls. */
export class CallIds {
  readonly #taken = new Set<string>();

  constructor(private readonly seed: string) {}

  /** @param taken of the calls so far */
  static after(seed: string, taken: readonly string[]): CallIds {
    const ids = new CallIds(seed);
    for (const id of taken) ids.#taken.add(id);
    return ids;
  }

  /** The id that the engine gave, where it is one and no other call has it; else one that stays the same for this answer and call. */
  of(given: string): string {
    const id = given !== "" && !this.#taken.has(given) ? given : this.#made();
    this.#taken.add(id);
    return id;
  }

  #made(): string {
    return `call_${digestOf(JSON.stringify([this.seed, this.#taken.size])).slice(0, 24)}`;
  }
}

/** The id of a call as an engine gives it, which may be a number; empty for none. */
export function idOf(given: unknown): string {
  return typeof given === "number" ? String(given) : text(given);
}

/** Arguments as clients parse them: some engines give none to a function without parameters, or null. */
export function wholeArguments(given: string): string {
  const json = given.trim();
  return json === "" || json === "null" ? "{}" : given;
}

/** Arguments as JSON: some engines give the object itself in place of it, and Anthropic's API does. */
export function argumentsOf(given: unknown): string {
  return typeof given === "object" && given !== null ? JSON.stringify(given) : text(given);
}

/** An index of a stream's pieces; null where it is none. Some engines write the number as a text. */
export function indexOf(given: unknown): number | null {
  const index = typeof given === "string" && given.trim() !== "" ? Number(given) : given;
  return typeof index === "number" && Number.isSafeInteger(index) && index >= 0 ? index : null;
}
