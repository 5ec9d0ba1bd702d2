import { type Digest, digestOf, LruMap, type TokenCounter } from "../../core/index.js";

/** Lists of tools whose tokens are remembered. */
const MOST_LISTS = 64;

/** Counts the tools of chats, which engines put into the prompt. An agent sends the same ones with every chat: they are counted once. */
export class ToolTokens {
  readonly #counted = new LruMap<Digest, number>(MOST_LISTS);

  /** Tokens of a body's tools, as JSON; 0 for none. Chat templates write them in forms of their own, so it is an estimate. */
  of({ tools, functions }: Readonly<Record<string, unknown>>, countTokens: TokenCounter): number {
    const given = [tools, functions].filter((list) => Array.isArray(list) && list.length > 0);
    if (given.length === 0) return 0;
    const text = JSON.stringify(given);
    const digest = digestOf(text);
    const tokens = this.#counted.get(digest) ?? countTokens(text);
    this.#counted.set(digest, tokens);
    return tokens;
  }
}
