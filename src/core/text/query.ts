/** Embedding models take 2,048 tokens and refuse more. No character costs more than a token. */
const MOST_CHARACTERS = 2_000;
const BETWEEN = " … ";

/** Base64 of a file, alone or in a data URL, also in lines. Linear: each repetition takes all that it can. */
const DATA_URL = /\bdata:[\w.+-]+\/[\w.+-]+[^\s,]{0,100},[\w+/=%-]*(?:\s+[\w+/-]{60,}={0,2})*/g;
const LONG_WORDS = /(?:[A-Za-z0-9+/_-]{60,}={0,2}(?:\s+|$|(?![A-Za-z0-9+/_=-])))+(?:[A-Za-z0-9+/]+={1,2})?/g;
const LEAST_BASE64 = 200;

/** A question as a search can take it: without base64, and of a long one its beginning and end, as a question stands before or after what is pasted. */
export function boundedQuery(text: string): string {
  const own = text.replace(DATA_URL, " ").replace(LONG_WORDS, (word) => (isBase64(word) ? " " : word));
  if (own.length <= MOST_CHARACTERS) return own;
  const words = own.replace(/\s+/g, " ");
  if (words.length <= MOST_CHARACTERS) return words;
  const half = (MOST_CHARACTERS - BETWEEN.length) / 2;
  // Without half a surrogate pair at either cut.
  const head = words.slice(0, half).replace(/[\ud800-\udbff]$/, "");
  const tail = words.slice(-half).replace(/^[\udc00-\udfff]/, "");
  return `${head}${BETWEEN}${tail}`;
}

function isBase64(word: string): boolean {
  return word.length >= LEAST_BASE64 && [/[a-z]/, /[A-Z]/, /[0-9]/].every((kind) => kind.test(word));
}
