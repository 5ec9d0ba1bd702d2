/** Half of what a query may cost is its beginning, half its end: a question stands before or after what is pasted. */
const MOST_TOKENS = 2_000;

/** Base64 of a file, alone or in a data URL, also in lines. Linear: each repetition takes all that it can. */
const DATA_URL = /\bdata:[\w.+-]+\/[\w.+-]+[^\s,]{0,100},[\w+/=%-]*(?:\s+[\w+/-]{60,}={0,2})*/g;
const LONG_WORDS = /(?:[A-Za-z0-9+/_-]{60,}={0,2}(?:\s+|$|(?![A-Za-z0-9+/_=-])))+(?:[A-Za-z0-9+/]+={1,2})?/g;
const LEAST_BASE64 = 200;

/**
 * A question as a search can take it: without base64, and at most about 2,000 tokens long, as embedding models take 2,048 and refuse more. If it
 * is longer, its beginning and its end.
 */
export function boundedQuery(text: string): string {
  const own = text.replace(DATA_URL, " ").replace(LONG_WORDS, (word) => (isBase64(word) ? " " : word));
  // No character costs more than a token.
  if (own.length <= MOST_TOKENS) return own;
  const words = own.replace(/\s+/g, " ");
  if (costOf(words) <= 2 * MOST_TOKENS) return words;
  const head = cutAt(words, 0, 1);
  const tail = cutAt(words, words.length - 1, -1);
  return `${wholeCharacters(words.slice(0, head))} … ${wholeCharacters(words.slice(tail + 1))}`;
}

function isBase64(word: string): boolean {
  return word.length >= LEAST_BASE64 && [/[a-z]/, /[A-Z]/, /[0-9]/].every((kind) => kind.test(word));
}

/** The index up to which half of the budget reaches. */
function cutAt(text: string, from: number, step: 1 | -1): number {
  let left = MOST_TOKENS;
  let at = from;
  while (left > 0) {
    left -= halfTokens(text, at);
    at += step;
  }
  return at;
}

function costOf(text: string): number {
  let cost = 0;
  for (let at = 0; at < text.length && cost <= 2 * MOST_TOKENS; at++) cost += halfTokens(text, at);
  return cost;
}

/** An upper estimate, in half tokens: word pieces have two letters, the last of a word perhaps one; other characters are pieces of their own. */
function halfTokens(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code === 0x20) return 0;
  return isLetter(code) && isLetter(text.charCodeAt(at - 1)) ? 1 : 2;
}

function isLetter(code: number): boolean {
  return (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
}

/** Without half a surrogate pair at either end. */
function wholeCharacters(text: string): string {
  return text.replace(/^[\udc00-\udfff]/, "").replace(/[\ud800-\udbff]$/, "");
}
