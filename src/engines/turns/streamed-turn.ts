import { digestOf } from "../../core/index.js";
import { append } from "../../core/text/collections.js";
import { type JsonObject, listIn, record, text } from "../../core/text/json.js";
import {
  CallIds,
  type CallStep,
  callFields,
  StreamedCall,
  StreamedCalls,
  signatureIn,
} from "../upstream/tool-calls.js";
import {
  type CarriedReasoning,
  callSigned,
  contentText,
  isSilent,
  MOST_SEALED,
  ReasoningRun,
  reasoningIn,
  type SaidReasoning,
} from "./reasoning.js";

/** How a turn ended: with an answer, with calls that the client is to answer, cut by the limit of its tokens, or withheld. */
export type TurnEnd = "answer" | "calls" | "length" | "refusal";

/** What a turn holds, as far as its end depends on it. */
export interface TurnContent {
  /** Calls of the client's functions; a provider's own tools are none. */
  readonly hasCalls: boolean;
  /** Whether a call ends within its arguments. */
  readonly isCallCut?: boolean;
  /** A refusal in place of an answer. */
  readonly hasRefusal?: boolean;
}

/**
 * Reasons for an answer that was cut by a limit: OpenAI's, Mistral's, Anthropic's, OpenRouter's, vLLM's, DeepSeek's, GLM's; gateways pass on
 * those of Gemini, Cohere and TGI.
 */
const LIMITED = new Set([
  ...["length", "model_length", "max_tokens", "max_output_tokens", "max_new_tokens", "max_length", "token_limit"],
  ...["model_context_window_exceeded", "error_limit", "time_limit", "incomplete"],
]);
/** … for one that a failure ended, … */
const FAILED = new Set([
  ...["error", "network_error", "insufficient_system_resource", "timeout"],
  ...["abort", "aborted", "cancelled", "canceled", "user_cancel"],
  // A call that the engine could not read.
  ...["function_call_filter", "malformed_function_call", "malformed_tool_use", "malformed_model_output"],
  ...["malformed_response", "unexpected_tool_call", "too_many_tool_calls"],
]);
/** … and for one that was withheld: OpenAI's, Anthropic's, Bedrock's, Cohere's, Gemini's, GLM's. */
const WITHHELD = new Set([
  ...["content_filter", "refusal", "content_filtered", "guardrail_intervened", "error_toxic"],
  ...["safety", "recitation", "blocklist", "prohibited_content", "spii", "sensitive", "language"],
  ...["image_safety", "image_prohibited_content", "image_recitation"],
]);

/** Reasons that say of calls that they are whole: what their arguments lack, the model left out. */
const CALLED = new Set(["tool_calls", "tool_use", "function_call"]);

/**
 * A turn's end, by its content: engines say `stop` or `end_turn` beside calls, say nothing, or say words of their own. Only that a turn
 * was cut or withheld is the engine's to say, also where it holds calls: more of them may have been to come. A call that ends within its
 * arguments was cut, unless the engine says that it is whole.
 *
 * @param reason OpenAI's `finish_reason` or Anthropic's `stop_reason`
 */
export function turnEndOf(reason: unknown, { hasCalls, isCallCut = false, hasRefusal = false }: TurnContent): TurnEnd {
  const names = reasonsIn(reason);
  if (names.some((name) => WITHHELD.has(name))) return "refusal";
  if (names.some((name) => LIMITED.has(name) || FAILED.has(name))) return "length";
  if (isCallCut && !names.some((name) => CALLED.has(name))) return "length";
  if (hasCalls) return "calls";
  return hasRefusal ? "refusal" : "answer";
}

/**
 * Whether the text of a turn that ended for this reason, and holds no calls, is all that the model said, up to a limit. False where there is
 * no reason: the turn did not end.
 */
export function isWholeText(reason: unknown): boolean {
  const names = reasonsIn(reason);
  return names.length > 0 && !names.some((name) => WITHHELD.has(name) || FAILED.has(name) || name === GOES_ON);
}

/** Anthropic's, of a turn that the client is to have continued. */
const GOES_ON = "pause_turn";

/**
 * The names in a reason. Gemini and Cohere write them in capitals, some gateways with hyphens or in camel case; Gemini's door for OpenAI's
 * clients writes two: `content_filter: RECITATION`.
 */
function reasonsIn(reason: unknown): readonly string[] {
  if (typeof reason !== "string") return [];
  const names =
    reason
      .replace(/([a-z])([A-Z])/g, "$1_$2")
      .toLowerCase()
      .replaceAll("-", "_")
      .match(/\w+/g) ?? [];
  return names.map((name) => name.replace(/^(?:finish_|stop_)?reason_/, ""));
}

/** What a turn consists of. */
export type TurnItem =
  | { readonly kind: "reasoning" | "text" | "refusal" }
  | { readonly kind: "call"; readonly id: string; readonly name: string };

/** What happens to a turn's items: each begins, goes on and ends before the next begins. Of a call, `text` is of its arguments. */
export type TurnEvent =
  | { readonly type: "begun"; readonly item: TurnItem }
  | { readonly type: "more"; readonly item: TurnItem; readonly text: string }
  /** `reasoning`: what is to be sealed with it; null where it is none. */
  | { readonly type: "ended"; readonly item: TurnItem; readonly reasoning: CarriedReasoning | null }
  /** What is to be sealed alone, in a place of its own. */
  | { readonly type: "sealed"; readonly reasoning: CarriedReasoning };

/** An item that is whole: its text, or a call's arguments; and what is sealed with it. Null: what is sealed stands alone. */
export interface WholeItem {
  readonly item: TurnItem | null;
  readonly text: string;
  readonly reasoning: CarriedReasoning | null;
}

/** Names of functions, where they are not known. */
export const NO_TOOLS: ReadonlySet<string> = new Set();
/** Most characters that wait for an item before them; with more, that counts as ended. */
const MOST_WAITING = 1_000_000;

/** An item that has not ended. */
interface OpenItem {
  /** Null: reasoning without a text, as far as it came. */
  kind: TurnItem["kind"] | null;
  /** Null where it is no reasoning. */
  readonly run: ReasoningRun | null;
  /** Characters of text in front of it. */
  readonly behind: number;
  /** Null where it is no call. */
  readonly call: StreamedCall | null;
  /** As it was given; null as long as it was not. */
  given: TurnItem | null;
  /** Its text that was not given yet. */
  waiting: string;
  hasEnded: boolean;
}

/**
 * Reads a turn from the chunks of a streamed chat completion, or from a whole one. Its items are given one after the other, as Messages and
 * Responses have them, in the order in which they began: the first as it comes, others once those before them are whole.
 */
export class StreamedTurn implements TurnContent {
  readonly #calls: StreamedCalls;
  readonly #ids: CallIds;
  readonly #open: OpenItem[] = [];
  readonly #byCall = new Map<StreamedCall, OpenItem>();
  /** Characters that were not given yet. */
  #waiting = 0;
  /** The calls that were given, with their ids. */
  readonly #given: [StreamedCall, string][] = [];
  /** The turn's text, as long as it may be signed, and its characters. */
  #text = "";
  #characters = 0;
  /** Fields beside the text that sign it. */
  #signature: JsonObject = {};
  /** The engine's reason for the end; null as long as it gave none. */
  finish: unknown = null;
  /** Whether a call was given. */
  hasCalls = false;
  hasRefusal = false;

  /**
   * @param tools names of the functions that the request has
   * @param seed a text that no other answer has: from it ids are made for calls that have none
   * @param sealsText whether clients may return of reasoning what is sealed, and no text
   */
  constructor(
    tools: ReadonlySet<string>,
    seed: string,
    private readonly sealsText = false,
  ) {
    this.#calls = new StreamedCalls(tools);
    this.#ids = new CallIds(seed);
  }

  get isCallCut(): boolean {
    const calls = [...this.#given.map(([call]) => call), ...this.#open.map(({ call }) => call)];
    return calls.some((call) => call?.isCut === true && call.name !== "");
  }

  /** Takes a chunk's choices, of which the first counts. */
  take(choices: unknown): readonly TurnEvent[] {
    for (const choice of listIn(choices)) {
      const { index, delta, finish_reason: finish } = record(choice);
      if (index !== 0 && index != null) continue;
      this.#takeDelta(record(delta));
      this.finish = finish ?? this.finish;
    }
    return this.#whatIsDue();
  }

  /**
   * Takes a whole message. What names no function is no call; a call without an id, or with that of another, gets one of its own, as clients
   * answer by it.
   */
  takeWhole(choice: unknown): this {
    const { message, finish_reason: finish } = record(choice);
    const said = record(message);
    this.#takeSaid(said);
    for (const fields of callFields(said)) {
      const call = new StreamedCall(NO_TOOLS);
      this.#add(this.#opened("call", call), call.take(fields));
    }
    this.finish = finish;
    return this;
  }

  /** Ends the turn; its items, whole. */
  items(): readonly WholeItem[] {
    const items: WholeItem[] = [];
    let said = "";
    for (const event of this.end()) {
      if (event.type === "begun") said = "";
      else if (event.type === "more") said += event.text;
      else if (event.type === "ended") items.push({ item: event.item, text: said, reasoning: event.reasoning });
      else items.push({ item: null, text: "", reasoning: event.reasoning });
    }
    return items;
  }

  /** Ends the turn. A call that names no function is none. */
  end(): readonly TurnEvent[] {
    this.#takeSteps(this.#calls.end());
    const events = this.#open.splice(0).flatMap((item) => [...this.#ended(item)]);
    const reasoning = this.#signedParts();
    return reasoning === null ? events : [...events, { type: "sealed", reasoning }];
  }

  /** What stands beside the calls and the text and belongs to them: thought signatures. Null: nothing is signed. */
  #signedParts(): CarriedReasoning | null {
    const ofCalls = this.#given
      .filter(([{ signature }]) => Object.keys(signature).length > 0)
      .map(([{ name, whole, signature }, id]) => [id, { of: callSigned(name, whole), fields: signature }] as const);
    const extra_content = this.#characters > MOST_SEALED ? undefined : this.#signature["extra_content"];
    if (ofCalls.length === 0 && extra_content === undefined) return null;
    return {
      ...(ofCalls.length === 0 ? {} : { calls: Object.fromEntries(ofCalls) }),
      ...(extra_content === undefined ? {} : { message: { of: digestOf(this.#text), fields: { extra_content } } }),
    };
  }

  #takeSaid(said: JsonObject): void {
    this.#think(reasoningIn(said));
    this.#say("text", contentText(said["content"]));
    this.#sign(said);
    this.#say("refusal", text(said["refusal"]));
  }

  #takeDelta(delta: JsonObject): void {
    this.#takeSaid(delta);
    this.#takeSteps(this.#calls.take(callFields(delta)));
  }

  #takeSteps(steps: readonly CallStep[]): void {
    for (const { call, more } of steps) {
      const item = this.#byCall.get(call) ?? this.#opened("call", call);
      this.#byCall.set(call, item);
      this.#add(item, more);
    }
  }

  #sign({ content, extra_content }: JsonObject): void {
    const said = contentText(content);
    this.#characters += said.length;
    if (this.#characters <= MOST_SEALED) this.#text += said;
    this.#signature = { ...this.#signature, ...signatureIn({ extra_content }) };
  }

  #think(thought: SaidReasoning): void {
    if (isSilent(thought)) return;
    const last = this.#open.at(-1);
    const item = last?.run == null ? this.#opened(null, null) : last;
    item.run?.take(thought);
    if (thought.text !== "") item.kind = "reasoning";
    this.#add(item, thought.text);
  }

  #say(kind: "text" | "refusal", said: string): void {
    if (said === "") return;
    if (kind === "refusal") this.hasRefusal = true;
    const last = this.#open.at(-1);
    this.#add(last?.kind === kind ? last : this.#opened(kind, null), said);
  }

  #opened(kind: OpenItem["kind"], call: StreamedCall | null): OpenItem {
    const run = kind === null ? new ReasoningRun() : null;
    const behind = this.#characters;
    const item: OpenItem = { kind, run, behind, call, given: null, waiting: "", hasEnded: false };
    this.#open.push(item);
    return item;
  }

  #add(item: OpenItem, more: string): void {
    if (item.hasEnded) return;
    item.waiting += more;
    this.#waiting += more.length;
  }

  #whatIsDue(): readonly TurnEvent[] {
    const events: TurnEvent[] = [];
    let ended = 0;
    for (let first = this.#open[0]; first !== undefined; first = this.#open[ended]) {
      const isLast = ended === this.#open.length - 1;
      const isStuck = !isLast && this.#waiting > MOST_WAITING;
      if (first.call?.isBegun === false && !isStuck) break;
      if (isLast || (first.call?.isWhole === false && !isStuck)) {
        append(events, this.#moved(first));
        break;
      }
      append(events, this.#ended(first));
      ended++;
    }
    this.#open.splice(0, ended);
    return events;
  }

  /** All that is left of an item; nothing of a call that names no function. */
  #ended(item: OpenItem): readonly TurnEvent[] {
    const { call } = item;
    item.hasEnded = true;
    if (item.given === null && call !== null) {
      this.#waiting += call.whole.length - item.waiting.length;
      item.waiting = call.whole;
    }
    const reasoning = item.run?.carried(this.sealsText, item.behind) ?? null;
    if (item.kind === null) return reasoning === null ? [] : [{ type: "sealed", reasoning }];
    if (call?.name !== "") return [...this.#moved(item), { type: "ended", item: this.#givenOf(item), reasoning }];
    this.#waiting -= item.waiting.length;
    return [];
  }

  /** An item's beginning, and what waits of it. */
  #moved(item: OpenItem): readonly TurnEvent[] {
    if (item.kind === null) return [];
    const events: TurnEvent[] = [];
    const isBegun = item.given !== null;
    const given = this.#givenOf(item);
    if (!isBegun) events.push({ type: "begun", item: given });
    if (item.waiting !== "") events.push({ type: "more", item: given, text: item.waiting });
    this.#waiting -= item.waiting.length;
    item.waiting = "";
    return events;
  }

  #givenOf(item: OpenItem): TurnItem {
    const { kind, call } = item;
    if (kind !== "call" || call === null) item.given ??= { kind } as TurnItem;
    else {
      this.hasCalls = true;
      if (item.given === null) {
        const id = this.#ids.of(call.id);
        this.#given.push([call, id]);
        item.given = { kind, id, name: call.name };
      }
    }
    return item.given;
  }
}
