/** A byte-pair vocabulary as in GGUF files: tokens in GPT-2's byte alphabet, and their merges by rank. */
export interface BytePairVocabulary {
  readonly tokens: readonly string[];
  readonly merges: readonly string[];
}

/**
 * GPT-2's vocabulary (`r50k_base`), or its first `size` tokens. Tokens are merged from earlier ones, so any prefix with the 256 bytes is a
 * valid vocabulary; a small one only splits text into more tokens.
 */
export async function gpt2Vocabulary(size = Number.POSITIVE_INFINITY): Promise<BytePairVocabulary> {
  // Imported here, as it is half a megabyte of source.
  const { default: ranks } = await import("gpt-tokenizer/bpeRanks/r50k_base");
  const tokens = ranks.slice(0, size).map((token) => bytesOf(token));
  const rankOf = new Map(tokens.map((token, rank) => [token, rank]));
  return {
    tokens: tokens.map(spelled),
    merges: tokens.flatMap((token, rank) => {
      if (token.length === 1) return [];
      const [left, right] = partsOf(token, rank, rankOf);
      return [`${spelled(left)} ${spelled(right)}`];
    }),
  };
}

/** A token's bytes, one character each. */
function bytesOf(token: string | readonly number[]): string {
  return Buffer.from(typeof token === "string" ? Buffer.from(token) : token).toString("latin1");
}

/** The two tokens that a token is merged from: its bytes after every earlier merge. */
function partsOf(token: string, rank: number, rankOf: ReadonlyMap<string, number>): readonly [string, string] {
  const parts = [...token];
  while (parts.length > 2) {
    let best = { at: -1, rank };
    for (let at = 0; at + 1 < parts.length; at++) {
      const merged = rankOf.get(`${parts[at]}${parts[at + 1]}`);
      if (merged !== undefined && merged < best.rank) best = { at, rank: merged };
    }
    if (best.at < 0) break;
    parts.splice(best.at, 2, `${parts[best.at]}${parts[best.at + 1]}`);
  }
  const [left, right] = parts;
  if (left === undefined || right === undefined || parts.length > 2) {
    throw new RangeError(`token ${rank} is not made of two earlier ones`);
  }
  return [left, right];
}

/** GPT-2's byte alphabet: printable bytes are themselves, the others are characters from U+0100 on, in order. */
const SPELLING = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const prints = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    return String.fromCharCode(prints ? byte : next++);
  });
})();

function spelled(bytes: string): string {
  return Array.from(bytes, (byte) => SPELLING[byte.charCodeAt(0)]).join("");
}
