import { type JsonObject, listIn, record, text } from "../upstream/json-values.js";
import { type StreamedCall, StreamedCalls } from "../upstream/streamed-calls.js";
import { type CalledFunction, CallIds, callFields, signatureIn } from "../upstream/tool-calls.js";
import type { TurnContent } from "../upstream/turn-end.js";
import { isSilent, ReasoningRun, reasoningIn, type SaidReasoning, signedParts } from "./answered-reasoning.js";
import type { CarriedReasoning } from "./carried-reasoning.js";

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
}

/**
 * Reads a turn from the chunks of a streamed chat completion. Its items are given one behind the other, as Messages and Responses have them,
 * in the order in which they began: the first as it comes, others once those before them are whole.
 */
export class StreamedTurn implements TurnContent {
  readonly #calls: StreamedCalls;
  readonly #ids: CallIds;
  readonly #open: OpenItem[] = [];
  readonly #byCall = new Map<StreamedCall, OpenItem>();
  /** The calls that were given, with their ids. */
  readonly #given: [StreamedCall, string][] = [];
  #finish: unknown = null;
  #text = "";
  /** Fields beside the turn's text that sign it. */
  #signature: JsonObject = {};
  #hasCalls = false;
  #hasRefusal = false;

  /**
   * @param tools names of the functions that the request has
   * @param answerId a text that no other answer has: from it ids are made for calls that have none
   * @param sealsText whether clients may return of reasoning what is sealed, and no text
   */
  constructor(
    tools: ReadonlySet<string>,
    answerId: string,
    private readonly sealsText = false,
  ) {
    this.#calls = new StreamedCalls(tools);
    this.#ids = new CallIds(answerId);
  }

  /** Whether a call was given. */
  get hasCalls(): boolean {
    return this.#hasCalls;
  }

  get hasRefusal(): boolean {
    return this.#hasRefusal;
  }

  /** The engine's reason for the end; null as long as it gave none. */
  get finish(): unknown {
    return this.#finish;
  }

  /** Takes a chunk's choices, of which the first counts. */
  take(choices: unknown): readonly TurnEvent[] {
    for (const choice of listIn(choices)) {
      const { index, delta, finish_reason: finish } = record(choice);
      if (index !== 0 && index != null) continue;
      this.#takeDelta(record(delta));
      this.#finish = finish ?? this.#finish;
    }
    return [...this.#whatIsDue()];
  }

  /** Ends the turn. A call that names no function is none. */
  end(): readonly TurnEvent[] {
    const events: TurnEvent[] = [];
    for (const item of this.#open.splice(0)) {
      const { call } = item;
      if (item.given === null && call !== null) {
        if (call.name === "") continue;
        item.waiting = call.whole;
      }
      events.push(...this.#moved(item), ...this.#ended(item));
    }
    const reasoning = this.#signedParts();
    return reasoning === null ? events : [...events, { type: "sealed", reasoning }];
  }

  #signedParts(): CarriedReasoning | null {
    const calls = this.#given.map(
      ([{ name, whole, signature }, id]): CalledFunction => ({ id, name, given: whole, signature }),
    );
    return signedParts({ ...this.#signature, content: this.#text }, calls);
  }

  #takeDelta(delta: JsonObject): void {
    this.#think(reasoningIn(delta));
    this.#say("text", text(delta["content"]));
    this.#text += text(delta["content"]);
    this.#signature = { ...this.#signature, ...signatureIn({ extra_content: delta["extra_content"] }) };
    this.#say("refusal", text(delta["refusal"]));
    for (const { call, more } of this.#calls.take(callFields(delta))) {
      const known = this.#byCall.get(call);
      if (known !== undefined) known.waiting += more;
      else this.#byCall.set(call, this.#opened("call", call, more));
    }
  }

  #think(thought: SaidReasoning): void {
    if (isSilent(thought)) return;
    const last = this.#open.at(-1);
    const item = last?.run == null ? this.#opened(null, null, "") : last;
    item.run?.take(thought);
    if (thought.text === "") return;
    item.kind = "reasoning";
    item.waiting += thought.text;
  }

  #say(kind: "text" | "refusal", said: string): void {
    if (said === "") return;
    if (kind === "refusal") this.#hasRefusal = true;
    const last = this.#open.at(-1);
    if (last?.kind === kind) last.waiting += said;
    else this.#opened(kind, null, said);
  }

  #opened(kind: OpenItem["kind"], call: StreamedCall | null, waiting: string): OpenItem {
    const run = kind === null ? new ReasoningRun() : null;
    const item: OpenItem = { kind, run, behind: this.#text.length, call, given: null, waiting };
    this.#open.push(item);
    return item;
  }

  *#whatIsDue(): Generator<TurnEvent> {
    for (;;) {
      const [first, second] = this.#open;
      if (first === undefined || first.call?.isBegun === false) return;
      yield* this.#moved(first);
      if (second === undefined || first.call?.isWhole === false) return;
      yield* this.#ended(first);
      this.#open.shift();
    }
  }

  /** An item's beginning, and what waits of it. */
  *#moved(item: OpenItem): Generator<TurnEvent> {
    if (item.kind === null) return;
    if (item.given === null) {
      item.given = this.#itemOf(item);
      yield { type: "begun", item: item.given };
    }
    if (item.waiting !== "") yield { type: "more", item: item.given, text: item.waiting };
    item.waiting = "";
  }

  *#ended({ given, run, behind }: OpenItem): Generator<TurnEvent> {
    const reasoning = run === null ? null : run.carried(this.sealsText, behind);
    if (given !== null) yield { type: "ended", item: given, reasoning };
    else if (reasoning !== null) yield { type: "sealed", reasoning };
  }

  #itemOf({ kind, call }: OpenItem): TurnItem {
    if (kind !== "call" || call === null) return { kind } as TurnItem;
    this.#hasCalls = true;
    const id = this.#ids.of(call.id);
    this.#given.push([call, id]);
    return { kind, id, name: call.name };
  }
}
