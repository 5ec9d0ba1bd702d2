import type { Digest } from "../../core/index.js";
import { type RecordedMessage, SharedMessage, sharedKey, writeShared } from "../journal/shared-message.js";
import { isWorthARow } from "../journal/sharing.js";
import type { MessageList, TableMessages } from "./table-messages.js";

/** A message's row, not sealed yet. */
export interface RepeatedMessage {
  readonly key: Digest;
  readonly json: string;
}

/**
 * What several turns of a scope were given. The tables have each message once, and so has the journal those that it shares: else a file of
 * windows or repeated histories would grow many times over.
 */
export class RepeatedMessages {
  /** Each message's body is read once, however many turns list it. */
  readonly #references = new Map<number, SharedMessage>();
  readonly #ids: ReadonlySet<number>;

  constructor(
    private readonly messages: TableMessages,
    scopeId: number,
  ) {
    this.#ids = messages.repeatedIn(scopeId);
  }

  /** Listed messages as a record has them. */
  saidOf(list: MessageList): readonly RecordedMessage[] {
    return (JSON.parse(list) as readonly number[]).map((id) => this.#references.get(id) ?? this.#read(id));
  }

  /** The rows that records refer to. */
  *rows(): Generator<RepeatedMessage> {
    for (const id of this.#ids) {
      const message = this.messages.bodyOf(id);
      if (message !== null && isWorthARow(message, false))
        yield { key: sharedKey(message), json: writeShared(message) };
    }
  }

  #read(id: number): RecordedMessage {
    const message = this.messages.bodyOf(id);
    if (message === null || !this.#ids.has(id) || !isWorthARow(message, false)) return message;
    const reference = new SharedMessage(sharedKey(message));
    this.#references.set(id, reference);
    return reference;
  }
}
