const VERDICTS: Readonly<Record<string, boolean>> = { CORRECT: true, WRONG: false, INCORRECT: false };

/** Of an answer's end: reading time grows with their square where quotes and brackets are wild. */
const READ_CHARACTERS = 10_000;

/** A JSON object without objects in it, as long as its quotes are closed. */
const FLAT_OBJECT = /\{(?:[^{}"]|"(?:\\.|[^"\\])*")*\}/g;

/**
 * What a judge's answer says: true for CORRECT, false for WRONG, null where that cannot be read from it. Read are JSON objects with a `label`,
 * in a fence or in a sentence, or else a last line that is nothing but the word. Labels that disagree are no verdict, and no word is picked
 * out of a sentence: "not correct" is not CORRECT. What a reasoning model thinks before `</think>` is let be.
 */
export function readVerdict(raw: string): boolean | null {
  const said = (raw.split("</think>").at(-1) ?? "").slice(-READ_CHARACTERS);
  const labels = new Set(
    [...said.matchAll(FLAT_OBJECT)].map(([object]) => labelOf(object)).filter((label) => label !== null),
  );
  if (labels.size > 1) return null;
  for (const label of labels) return label;
  const lines = said.split("\n").filter((line) => /\p{L}/u.test(line));
  return verdictOf((lines.at(-1) ?? "").replace(/^[\s\W]*label\W+/i, ""));
}

function labelOf(object: string): boolean | null {
  try {
    const read: unknown = JSON.parse(object);
    const label = typeof read === "object" && read !== null && "label" in read ? read.label : null;
    return typeof label === "string" ? verdictOf(label) : null;
  } catch {
    return null;
  }
}

/** Of a text that is one word, marks around it aside. */
function verdictOf(text: string): boolean | null {
  const word = text.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "").toUpperCase();
  return Object.hasOwn(VERDICTS, word) ? (VERDICTS[word] ?? null) : null;
}
