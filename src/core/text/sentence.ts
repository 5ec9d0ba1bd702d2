import { isRecord, listIn, record } from "./json.js";

/**
 * Fields with an error's message, the most telling first. FastAPI: `detail`, a list of `msg`; Mem0: `error`, `message`, `detail`; engines and
 * gateways: `error`, `errors`.
 */
const SAYING = ["detail", "error_description", "error", "message", "msg", "error_message", "reason", "errors", "title"];
const MAX_LEVELS = 4;

/** The message in an error's JSON, in any of these forms; null for none. */
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

export function joinedSentences(sentences: readonly (string | null)[]): string | null {
  return sentences.filter((said) => said !== null).join("; ") || null;
}

function placed(loc: unknown, said: string): string {
  const path = listIn(loc).filter((step) => typeof step === "string" || typeof step === "number");
  return path.length === 0 ? said : `${path.join(".")}: ${said}`;
}
