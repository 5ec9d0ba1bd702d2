import { exchangeParts } from "../prompt/exchange-text.js";
import type { Digest } from "../text/ids.js";
import type { Conversation, RecalledHistory } from "./conversation.js";
import { meaningOf } from "./window.js";

/** Messages before and after one by which its place is found. */
const NEAR = 2;

/**
 * Whether exchanges, as they are written back, were said in a conversation and have another form in its history now, or none: what was
 * recorded of a message that its client redacted is not to bring the old form back. Only messages of plain text are recognised. The first
 * question costs O(turns + messages), each further one O(turns).
 */
export function replacedExchanges(
  conversation: Conversation,
  { turns, rest }: Pick<RecalledHistory, "turns" | "rest">,
): (exchange: string) => boolean {
  let history: HistoryPlaces | undefined;
  return (exchange) => {
    history ??= new HistoryPlaces(conversation, [...turns.flatMap(({ turn }) => turn.meant), ...rest.meant]);
    const now = history;
    return exchangeParts(exchange).some(({ question, answer }) => {
      const asked = meaningOf({ role: "user", content: question });
      const told = meaningOf({ role: "assistant", content: answer });
      for (const { before, after } of conversation.saidAround(asked, NEAR)) {
        if (now.isReplaced(asked, before, after)) return true;
        if (after[0] === told && now.isReplaced(told, [...before, asked].slice(-NEAR), after.slice(1))) return true;
      }
      return false;
    });
  };
}

/** Where the messages of a history stand. */
class HistoryPlaces {
  readonly #places = new Map<Digest | undefined, number[]>();
  readonly #asked = new Set<Digest | undefined>();

  constructor(
    conversation: Conversation,
    private readonly history: readonly Digest[],
  ) {
    for (const [at, meaning] of history.entries()) {
      const places = this.#places.get(meaning);
      if (places === undefined) this.#places.set(meaning, [at]);
      else places.push(at);
    }
    for (const { meant, promptTokens } of conversation.turns) if (promptTokens > 0) this.#asked.add(meant.at(-1));
    this.#asked.add(history.at(-1));
  }

  /**
   * Whether a message is missing where it stood: behind the messages before it, or in front of those after it. Both of either side are enough.
   * One is where another message has its place that nobody asked: answers repeat, so a question may stand beside the same one elsewhere. What a
   * window cut has no place.
   */
  isReplaced(meaning: Digest, before: readonly Digest[], after: readonly Digest[]): boolean {
    if (this.#places.has(meaning)) return false;
    return this.#isMissing(before.toReversed(), 1) || this.#isMissing(after, -1);
  }

  /** @param beside the messages on one side, the nearest first; `step` leads from them to the place */
  #isMissing(beside: readonly Digest[], step: 1 | -1): boolean {
    return beside.some((meaning, distance) =>
      (this.#places.get(meaning) ?? []).some((at) => {
        const place = at + step * (distance + 1);
        const isThere = (other: Digest, n: number) => this.history[place - step * (n + 1)] === other;
        const isSure = beside.length === NEAR && beside.every(isThere);
        return place in this.history && (isSure || !this.#asked.has(this.history[place]));
      }),
    );
  }
}
