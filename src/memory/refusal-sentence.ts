import { z } from "zod";
import { withoutFilePaths } from "../core/text/file-paths.js";

/** Largest body that is read for a sentence. */
const MAX_BODY_CHARACTERS = 64 * 1024;
/** Longest sentence that is passed on. */
const MAX_SENTENCE_CHARACTERS = 300;
/** Shortest text of a request that counts as a quotation: single words say nothing of anybody. */
const LEAST_QUOTED_CHARACTERS = 8;

/**
 * Fields that say it, the one that says most first: Mem0's server says it in `detail`, its platform in `error`, `message` or `detail`, what
 * stands in front of them in others, each as a text, in an object or in a list.
 */
const SAYING = ["detail", "error_description", "error", "message", "msg", "reason", "errors", "title"];
/** Most objects and lists around it. */
const MAX_LEVELS = 4;

/** What looks like a key or a password, whosever it is: prefixed keys, bearer tokens, credentials in URLs, `key=…`. */
const SECRETS: readonly (readonly [RegExp, string])[] = [
  [/\b(?:sk|pk|rk|m0|mem0|memstem|gsk|xai|hf|ghp|AKIA|AIza)[-_]?[\w*-]{6,}/gi, "***"],
  [/\b(bearer|basic|token)\s+[\w.~+/=-]{6,}/gi, "$1 ***"],
  [/:\/\/[^\s/@]+@/g, "://***@"],
  [/\b(api[-_ ]?key|password|passwd|secret|token|authorization)(["']?\s*[=:]\s*["']?)[^\s"',;}]+/gi, "$1$2***"],
  [/\beyJ[\w-]+\.[\w.-]+/g, "***"],
  [/\b(?=\w*\d)(?=\w*[a-z])\w{32,}\b/gi, "***"],
];

/**
 * What a memory service says of a request that it refused, as one line; null where its body has no sentence. Bounded; without control
 * characters, file paths, what looks like a secret, and the texts that it was sent.
 *
 * @param sent the request's body, whose texts are not quoted
 */
export function refusalSentence(body: string, sent: string | undefined, secret: string | undefined): string | null {
  if (body.length > MAX_BODY_CHARACTERS) return null;
  const said = saidIn(body);
  if (said === null) return null;
  const known = secret === undefined ? said : said.replaceAll(secret, "***");
  const unquoted = textsIn(sent).reduce((text, quoted) => text.replaceAll(quoted, "…"), known);
  const masked = SECRETS.reduce((text, [pattern, instead]) => text.replace(pattern, instead), unquoted);
  const line = withoutFilePaths(masked)
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim();
  if (line === "") return null;
  return line.length <= MAX_SENTENCE_CHARACTERS ? line : `${line.slice(0, MAX_SENTENCE_CHARACTERS - 1).trimEnd()}…`;
}

function saidIn(body: string): string | null {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    // Pages say nothing, and what is longer is no sentence.
    return body.length > MAX_SENTENCE_CHARACTERS || /^\s*[<{[]/.test(body) ? null : body;
  }
  return sentenceIn(json, MAX_LEVELS);
}

function sentenceIn(value: unknown, levels: number): string | null {
  if (typeof value === "string") return value;
  if (levels === 0 || typeof value !== "object" || value === null) return null;
  if (Array.isArray(value)) return joined(value.map((one) => sentenceIn(one, levels - 1)));
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name of SAYING) {
    const said = sentenceIn(fields[name], levels - 1);
    // FastAPI says where; its `input`, the value itself, is never read.
    if (said !== null) return name === "msg" ? placed(fields["loc"], said) : said;
  }
  // Django names fields, at the top.
  if (levels < MAX_LEVELS) return null;
  return joined(
    Object.entries(fields).map(([name, texts]) => (areTexts(texts) ? `${name}: ${texts.join(" ")}` : null)),
  );
}

function joined(sentences: readonly (string | null)[]): string | null {
  return sentences.filter((said) => said !== null).join("; ") || null;
}

function placed(loc: unknown, said: string): string {
  const path = Array.isArray(loc) ? loc.filter((step) => typeof step === "string" || typeof step === "number") : [];
  return path.length === 0 ? said : `${path.join(".")}: ${said}`;
}

function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((text) => typeof text === "string");
}

/** The query and the texts of messages, longest first. */
function textsIn(sent: string | undefined): readonly string[] {
  if (sent === undefined) return [];
  const { query, messages } = z
    .looseObject({
      query: z.string().optional().catch(undefined),
      messages: z.array(z.looseObject({ content: z.string() })).catch([]),
    })
    .catch({ messages: [] })
    .parse(jsonOf(sent));
  return [...(query === undefined ? [] : [query]), ...messages.map(({ content }) => content)]
    .filter(({ length }) => length >= LEAST_QUOTED_CHARACTERS)
    .sort((a, b) => b.length - a.length);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
