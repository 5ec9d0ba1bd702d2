import { isRecord, listIn, record } from "./json.js";

/**
 * Fields in which services and engines say what is wrong, the one that says most first: a text, or an object or a list around one. FastAPI has
 * `detail`, a list of `msg` for invalid requests; Mem0's platform `error`, `message` or `detail`; engines `error`, gateways `errors` around it.
 */
const SAYING = ["detail", "error_description", "error", "message", "msg", "error_message", "reason", "errors", "title"];
/** Most objects and lists around it. */
const MAX_LEVELS = 4;

/** What an error in JSON says of itself, in whatever form; null where it has no words. */
export function sentenceIn(value: unknown, levels = MAX_LEVELS): string | null {
  if (typeof value === "string") return value.trim() === "" ? null : value;
  if (levels === 0 || !isRecord(value)) return null;
  if (Array.isArray(value)) return joinedSentences(listIn(value).map((one) => sentenceIn(one, levels - 1)));
  const fields = record(value);
  for (const name of SAYING) {
    const said = sentenceIn(fields[name], levels - 1);
    // FastAPI says where; its `input`, the value itself, is never read.
    if (said !== null) return name === "msg" ? placed(fields["loc"], said) : said;
  }
  return null;
}

/** Sentences in one text; null where there is none. */
export function joinedSentences(sentences: readonly (string | null)[]): string | null {
  return sentences.filter((said) => said !== null).join("; ") || null;
}

function placed(loc: unknown, said: string): string {
  const path = listIn(loc).filter((step) => typeof step === "string" || typeof step === "number");
  return path.length === 0 ? said : `${path.join(".")}: ${said}`;
}
