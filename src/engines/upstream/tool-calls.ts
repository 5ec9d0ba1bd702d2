import { digestOf } from "../../core/index.js";
import { type JsonObject, listIn, record, text } from "../../core/text/json.js";

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

/** A call, and what a fragment adds to its arguments. */
export interface CallStep {
  readonly call: StreamedCall;
  readonly more: string;
}

/**
 * Finds the call that each fragment of a chat completion's stream belongs to. An id names a call, whatever the index: engines number all calls
 * with 0, not at all, or one call twice. Where a fragment has no id, its index does, then its place after the last one; and a call that is
 * whole takes no more, so what follows it is the next.
 */
export class StreamedCalls {
  readonly #byId = new Map<string, StreamedCall>();
  readonly #byIndex = new Map<number, StreamedCall>();
  /** Ids of several calls, which their indexes distinguish. */
  readonly #shared = new Set<string>();
  /** The call of the last fragment. */
  #last: StreamedCall | null = null;

  /** @param tools names of the request's functions, which distinguish a whole name from a part of one; empty where they are not known */
  constructor(private readonly tools: ReadonlySet<string>) {}

  /**
   * Ends the answer: of several calls under one id and one name, those whose indexes came without arguments. As long as no two of them had
   * any, the indexes were those of one call.
   */
  end(): readonly CallStep[] {
    return [...this.#byIndex].flatMap(([index, { id, name, ownIndex }]) => {
      if (!this.#shared.has(id) || index === ownIndex) return [];
      const call = new StreamedCall(this.tools);
      return [{ call, more: call.take({ index, id, name, given: "", signature: {} }) }];
    });
  }

  /** Takes the fragments of one chunk. */
  take(fragments: readonly CallFields[]): readonly CallStep[] {
    const beside = new Set<StreamedCall>();
    return fragments.filter(holdsAny).map((fragment) => {
      const known = this.#knownFor(fragment, beside);
      const call = known ?? new StreamedCall(this.tools);
      const isBare = known === null && fragment.name === "";
      const before = isBare ? (this.#placeOf(fragment) ?? this.#last) : null;
      const more = call.take(isBare ? { ...fragment, name: before?.nextName ?? "" } : fragment);
      if (fragment.id !== "") this.#byId.set(fragment.id, call);
      if (fragment.index !== null) this.#byIndex.set(fragment.index, call);
      this.#last = call;
      beside.add(call);
      return { call, more };
    });
  }

  /** The call that a fragment goes on with; null: it begins one. */
  #knownFor(fragment: CallFields, beside: ReadonlySet<StreamedCall>): StreamedCall | null {
    const { index, id, name } = fragment;
    const named = id === "" ? undefined : this.#namedBy(id, index);
    const call = named ?? this.#placeOf(fragment);
    if (call === null) return null;
    // An id that comes late belongs to the call that has none yet.
    if (id !== "" && named === undefined && call.id !== "") return null;
    // Where nothing distinguishes calls, a chunk has one fragment of each.
    const isUntold = id === "" && index === null && call.id === "";
    if (isUntold && name !== "" && call.name !== "" && beside.has(call)) return null;
    const isNewIndex = index !== null && !this.#byIndex.has(index);
    if (!call.isOverBefore(fragment) && !(isNewIndex && this.#isFollowed(call, fragment))) return call;
    const isSameId = call.id !== "" && (id === "" || id === call.id);
    if (isSameId && index !== null && index !== call.ownIndex) this.#shared.add(call.id);
    return null;
  }

  /** Whether a fragment under an index of its own names the next call, where both have one id and one name. */
  #isFollowed(call: StreamedCall, { id, name, given }: CallFields): boolean {
    if (id === "" || id !== call.id || name === "" || name !== call.name) return false;
    // Arguments that come again are those of one call under two indexes.
    return this.#shared.has(id) || (call.isWhole && wholeArguments(given) === "{}");
  }

  /** Where several calls have one id, the index distinguishes them. */
  #namedBy(id: string, index: number | null): StreamedCall | undefined {
    const there = index === null ? undefined : this.#byIndex.get(index);
    return there?.id === id ? there : this.#byId.get(id);
  }

  #placeOf({ index, id, name }: CallFields): StreamedCall | null {
    const last = this.#last;
    if (index === null) return last;
    // An index may come late, too.
    const isLate = last?.index === null && (id !== "" || name === "");
    return this.#byIndex.get(index) ?? (isLate ? last : null);
  }
}

function holdsAny({ id, name, given, signature }: CallFields): boolean {
  return id !== "" || name !== "" || given !== "" || Object.keys(signature).length > 0;
}

/** A call that is being streamed. */
export class StreamedCall {
  /** The engine's; empty as long as it gave none. */
  id = "";
  /** As far as it is known. */
  name = "";
  /** The name, where it came again after whole arguments, or under another index: the next call's, if that brings none. */
  nextName = "";
  index: number | null = null;
  /** Fields beside the function that sign it; empty where there are none. */
  signature: JsonObject = {};
  #given = "";
  /** The index under which its arguments began; null: they did not, or without one. */
  #givenAt: number | null = null;
  readonly #json = new ObjectEnd();
  /** Whether arguments came after the name. */
  #isNamePast = false;

  constructor(private readonly tools: ReadonlySet<string>) {}

  /** Whether all that stands in front of the arguments is known, and those have begun. */
  get isBegun(): boolean {
    return this.id !== "" && this.#isNameWhole && this.#json.isBegun;
  }

  /** Whether its arguments are whole. */
  get isWhole(): boolean {
    return this.#json.isOver;
  }

  /** Whether its arguments have begun, and lack their end. */
  get isCut(): boolean {
    return this.#json.isBegun && !this.#json.isOver;
  }

  /** The index that is no other call's: under which its arguments began, or it did. */
  get ownIndex(): number | null {
    return this.#givenAt ?? this.index;
  }

  /** Whether it ended before this fragment, which then begins the next call. */
  isOverBefore({ index, id, name, given }: CallFields): boolean {
    const isNamed = id !== "" && id === this.id;
    const isSameName = name === "" || this.name === "" || name === this.name;
    const areBegun = given.trimStart().startsWith("{");
    if (this.isWhole && areBegun) return !(isNamed && isSameName && given === this.#given);
    // One id and one name for several calls: arguments that begin under two indexes are two calls'.
    if (areBegun && index !== null && this.#givenAt !== null && index !== this.#givenAt) return true;
    if (isSameName) return false;
    // One id for several calls, of which each has an index and a name.
    if (isNamed) return this.#isElsewhere(index) && !this.#isOrBeginsTool(this.name + name);
    const isPast = this.#isNamePast || this.isWhole;
    const isTool = this.tools.has(this.name);
    if (this.#isOrBeginsTool(this.name + name)) return isPast && isTool;
    return (isPast && !this.#beginsTool(this.name)) || (isTool && this.#isOrBeginsTool(name));
  }

  /** Gives what the fragment adds to the arguments. */
  take({ index, id, name, given, signature }: CallFields): string {
    this.index ??= index;
    this.signature = { ...this.signature, ...signature };
    if (this.id === "") this.id = id;
    if (name === this.name && (this.isWhole || this.#isElsewhere(index))) this.nextName = name;
    const before = this.name;
    if (name !== "") this.name = this.#withPart(name);
    // Nothing follows a whole object: some engines repeat it, or close it twice.
    const more = this.isWhole ? "" : given;
    this.#given += more;
    const hadBegun = this.#json.isBegun;
    this.#json.take(more);
    if (!hadBegun && this.#json.isBegun) this.#givenAt = index;
    if (more.trim() !== "" && before !== "" && this.name === before) this.#isNamePast = true;
    return more;
  }

  /** What may be sent as arguments once no more comes. */
  get whole(): string {
    return wholeArguments(this.#given);
  }

  #isElsewhere(index: number | null): boolean {
    return index !== null && this.index !== null && index !== this.index;
  }

  get #isNameWhole(): boolean {
    if (this.name === "") return false;
    const isTool = this.tools.has(this.name);
    if (this.#beginsTool(this.name)) return isTool && this.#isNamePast;
    return isTool || this.#isNamePast;
  }

  /** Names come whole, in every fragment again, as far as they are known, or in parts. */
  #withPart(part: string): string {
    const name = this.name;
    const joined = name + part;
    if (part === name) return !this.tools.has(name) && this.#isOrBeginsTool(joined) ? joined : name;
    return !this.#isOrBeginsTool(joined) && this.#isOrBeginsTool(part) ? part : joined;
  }

  #isOrBeginsTool(name: string): boolean {
    return this.tools.has(name) || this.#beginsTool(name);
  }

  #beginsTool(name: string): boolean {
    for (const tool of this.tools) if (tool.length > name.length && tool.startsWith(name)) return true;
    return false;
  }
}

/** Finds the end of a JSON object that comes in pieces. */
class ObjectEnd {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  isBegun = false;
  isOver = false;

  take(piece: string): void {
    for (const character of piece) {
      if (this.#isInText) this.#takeInText(character);
      else if (character === '"') this.#isInText = true;
      else if (character === "{" || character === "[") {
        this.#depth++;
        this.isBegun = true;
      } else if (character === "}" || character === "]") this.#depth--;
      this.isOver = this.isBegun && this.#depth <= 0 && !this.#isInText;
      if (this.isOver) return;
    }
  }

  #takeInText(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === "\\") this.#isEscaped = true;
    else if (character === '"') this.#isInText = false;
  }
}
