import { z } from "zod";
import { withoutFilePaths } from "../core/text/file-paths.js";

/** Largest body that is read for a sentence. */
const MAX_BODY_CHARACTERS = 64 * 1024;
/** Longest sentence that is passed on. */
const MAX_SENTENCE_CHARACTERS = 300;
/** Shortest text of a request that counts as a quotation: single words say nothing of anybody. */
const LEAST_QUOTED_CHARACTERS = 8;

/** FastAPI's form of what is wrong with a field; its `input`, the value itself, is never read. */
const fieldIssue = z.object({ loc: z.array(z.union([z.string(), z.number()])).catch([]), msg: z.string() });
/** Mem0's server says it in `detail`, its platform in `error`, `message` or `detail`; Django names fields. */
const refusal = z.looseObject({
  detail: z
    .union([z.string(), z.array(fieldIssue)])
    .optional()
    .catch(undefined),
  error: z
    .union([z.string(), z.looseObject({ message: z.string() })])
    .optional()
    .catch(undefined),
  message: z.string().optional().catch(undefined),
});

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
    return null;
  }
  if (typeof json === "string") return json;
  const read = refusal.safeParse(json);
  if (!read.success) return null;
  const { detail, error, message, ...fields } = read.data;
  if (typeof detail === "string") return detail;
  if (detail !== undefined && detail.length > 0)
    return detail.map(({ loc, msg }) => (loc.length === 0 ? msg : `${loc.join(".")}: ${msg}`)).join("; ");
  if (error !== undefined) return typeof error === "string" ? error : error.message;
  if (message !== undefined) return message;
  const named = Object.entries(fields).flatMap(([name, value]) => {
    const texts: readonly unknown[] = Array.isArray(value) ? value : [];
    return texts.every((text) => typeof text === "string") && texts.length > 0 ? [`${name}: ${texts.join(" ")}`] : [];
  });
  return named.length === 0 ? null : named.join("; ");
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
