import { type JsonObject, listIn, record, text } from "./json-values.js";
import { type StreamedCall, StreamedCalls } from "./streamed-calls.js";
import { CallIds, callFields } from "./tool-calls.js";
import type { TurnContent } from "./turn-end.js";

/** What a turn consists of. */
export type TurnItem =
  | { readonly kind: "reasoning" | "text" | "refusal" }
  | { readonly kind: "call"; readonly id: string; readonly name: string };

/** What happens to a turn's items: each begins, goes on and ends before the next begins. Of a call, `text` is of its arguments. */
export type TurnEvent =
  | { readonly type: "begun"; readonly item: TurnItem }
  | { readonly type: "more"; readonly item: TurnItem; readonly text: string }
  | { readonly type: "ended"; readonly item: TurnItem };

/** An item that has not ended. */
interface OpenItem {
  readonly kind: TurnItem["kind"];
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
  #finish: unknown = null;
  #hasCalls = false;
  #hasRefusal = false;

  /**
   * @param tools names of the functions that the request has
   * @param answerId a text that no other answer has: from it ids are made for calls that have none
   */
  constructor(tools: ReadonlySet<string>, answerId: string) {
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
      events.push(...this.#moved(item), { type: "ended", item: item.given ?? this.#itemOf(item) });
    }
    return events;
  }

  #takeDelta(delta: JsonObject): void {
    this.#say("reasoning", reasoningIn(delta));
    this.#say("text", text(delta["content"]));
    this.#say("refusal", text(delta["refusal"]));
    for (const { call, more } of this.#calls.take(callFields(delta))) {
      const known = this.#byCall.get(call);
      if (known !== undefined) known.waiting += more;
      else this.#byCall.set(call, this.#opened("call", call, more));
    }
  }

  #say(kind: Exclude<TurnItem["kind"], "call">, said: string): void {
    if (said === "") return;
    if (kind === "refusal") this.#hasRefusal = true;
    const last = this.#open.at(-1);
    if (last?.kind === kind) last.waiting += said;
    else this.#opened(kind, null, said);
  }

  #opened(kind: TurnItem["kind"], call: StreamedCall | null, waiting: string): OpenItem {
    const item: OpenItem = { kind, call, given: null, waiting };
    this.#open.push(item);
    return item;
  }

  *#whatIsDue(): Generator<TurnEvent> {
    for (;;) {
      const [first, second] = this.#open;
      if (first === undefined || first.call?.isBegun === false) return;
      yield* this.#moved(first);
      if (second === undefined || first.call?.isWhole === false) return;
      if (first.given !== null) yield { type: "ended", item: first.given };
      this.#open.shift();
    }
  }

  /** An item's beginning, and what waits of it. */
  *#moved(item: OpenItem): Generator<TurnEvent> {
    if (item.given === null) {
      item.given = this.#itemOf(item);
      yield { type: "begun", item: item.given };
    }
    if (item.waiting !== "") yield { type: "more", item: item.given, text: item.waiting };
    item.waiting = "";
  }

  #itemOf({ kind, call }: OpenItem): TurnItem {
    if (kind !== "call" || call === null) return { kind } as TurnItem;
    this.#hasCalls = true;
    return { kind, id: this.#ids.of(call.id), name: call.name };
  }
}

/** What a model thought, by either of the names that engines give it. */
export function reasoningIn({ reasoning_content, reasoning }: JsonObject): string {
  return text(reasoning_content) || text(reasoning);
}
