/*
 * Words as the Penn Treebank splits them, which is what NLTK's `word_tokenize` does and so what published BLEU scores count. Written to the
 * Treebank's conventions, for lower-case text. Where a sentence ends NLTK asks Punkt, a trained model that knows some 150 abbreviations; here
 * every period before a space ends one, but for initials (`u.s.`, `p.m.`, `j.`) and {@link TITLES}.
 */

const TITLES = new Set(["dr", "mr", "mrs", "ms", "st", "jr", "sr", "vs"]);

/** A period at a word's end, quotes and brackets after it included. */
const FINAL_PERIOD = /([^\s.]+)\.(?=["'”’»)\]}>]*(\s|$))/g;
const INITIALS = /^\p{L}(?:\.\p{L})*$/u;

/** What stands alone wherever it is. Commas and colons do not within figures: `1,000`, `7:30`. */
const ALONE = /\.{2,}|--|''|[“”„«»"`‘’]|[;@#$%&?!*()[\]{}<>‒-―]|[,:](?!\d)/g;

/** A quote or apostrophe before a word, which is not a clitic on its own. */
const OPENING_QUOTE = /(?<![\p{L}\p{N}_])'(?=[\p{L}\p{N}_])(?!(?:re|ve|ll|m|t|s|d|n)(?![\p{L}\p{N}_]))/gu;

const CLITIC = /^(.*[^'])('s|'m|'d|'ll|'re|'ve|n't|')$/;

/** Words that the Treebank takes for two. */
const TWO_WORDS: Readonly<Record<string, readonly [string, string]>> = {
  cannot: ["can", "not"],
  "d'ye": ["d", "'ye"],
  gimme: ["gim", "me"],
  gonna: ["gon", "na"],
  gotta: ["got", "ta"],
  lemme: ["lem", "me"],
  "more'n": ["more", "'n"],
  wanna: ["wan", "na"],
};

/** A text's words, in order, in lower case; punctuation marks are words of their own. */
export function treebankWords(text: string): string[] {
  return text
    .toLowerCase()
    .replace(/(^|[\s([{<])"/g, "$1 `` ")
    .replace(OPENING_QUOTE, "' ")
    .replace(FINAL_PERIOD, (found, word: string, after: string) =>
      after !== "" && (INITIALS.test(word) || TITLES.has(word)) ? found : `${word} . `,
    )
    .replace(ALONE, (mark) => (mark === '"' ? " '' " : ` ${mark} `))
    .replace(/` +`/g, "``")
    .split(/\s+/)
    .filter((word) => word !== "")
    .flatMap(splitWord);
}

function splitWord(word: string): readonly string[] {
  const two = TWO_WORDS[word];
  if (two !== undefined) return two;
  const [, stem, clitic] = CLITIC.exec(word) ?? [];
  return stem === undefined || clitic === undefined ? [word] : [...splitWord(stem), clitic];
}
