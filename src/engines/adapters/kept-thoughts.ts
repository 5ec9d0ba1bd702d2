/*
 * Some chat templates keep thoughts only after the newest user message. A user message after a tool result would drop the current turn's
 * thoughts, and end the cached prefix at its first step. For them, memories go into the result.
 */

/** After a version: no further digit, and no unit of billions. */
const NO_SIZE = "(?!\\d|[\\d.]*b\\b)";

/**
 * Sources: `chat_template` of Qwen3, GLM-4.5, MiniMax-M2, MiMo-V2, Step-3.5, LFM2.5 and Nemotron 3 on Hugging Face; `encoding/` of DeepSeek-V3.2;
 * https://api-docs.deepseek.com/guides/thinking_mode
 */
const MODEL = new RegExp(
  `(?:^|[^a-z])(?:${[
    `qwen-?[3-9]${NO_SIZE}`,
    `glm-?(?:4[.p-])?[5-9]${NO_SIZE}`,
    "minimax-?m[2-9]",
    "mimo-?v[2-9]",
    "step-?3[.p-][5-9]",
    "lfm-?2[.p-]5",
    `nemotron-?[3-9]${NO_SIZE}`,
    "deepseek-(?:v3[.p-][2-9]|v[4-9]|chat$|reasoner$)",
  ].join("|")})`,
  "i",
);

export function keepsThoughtsByName(model: unknown): boolean {
  return typeof model === "string" && MODEL.test(model.slice(0, 200));
}

const IS_OF_USER = /(?<!!=\s*)["']user["']/;
const SETS_PLACE = /^set\s+([\w.]+)\s*=(?!=).*(?:loop\.|index|\bidx\b|\bi\b)/s;
const THOUGHTS = /think|reasoning/i;

/** Whether a template stores the index of a user message and compares other messages with it. False if unknown. O(length). */
export function keepsThoughtsBehindUser(template: string): boolean {
  if (!THOUGHTS.test(template)) return false;
  const places = new Set<string>();
  const open: string[] = [];
  for (const tag of tagsOf(template)) {
    if (isCompared(tag, places)) return true;
    if (/^(?:if|for) /.test(tag)) open.push(tag);
    else if (tag.startsWith("elif ") || tag === "else") open.splice(-1, 1, tag);
    else if (tag === "endif" || tag === "endfor") open.pop();
    const place = SETS_PLACE.exec(tag)?.[1];
    if (place !== undefined && IS_OF_USER.test(`${conditionsIn(open)} ${tag}`)) places.add(place);
  }
  return false;
}

const MOST_CONDITIONS = 16;

function conditionsIn(open: readonly string[]): string {
  const inner = open.slice(-MOST_CONDITIONS);
  const loop = inner.findLastIndex((tag) => tag.startsWith("for "));
  return inner.slice(Math.max(0, loop)).join(" ");
}

function isCompared(tag: string, places: ReadonlySet<string>): boolean {
  if (places.size === 0) return false;
  const code = tag.replace(/"[^"]*"|'[^']*'/g, "");
  return /[<>]/.test(code) && (code.match(/[\w.]+/g) ?? []).some((name) => places.has(name));
}

function* tagsOf(template: string): Generator<string> {
  for (let at = template.indexOf("{"); at >= 0; at = template.indexOf("{", at)) {
    const close = { "%": "%}", "{": "}}", "#": "#}" }[template[at + 1] ?? ""];
    const end = close === undefined ? -1 : template.indexOf(close, at + 2);
    if (close !== undefined && end < 0) return;
    if (end >= 0 && close !== "#}")
      yield template
        .slice(at + 2, end)
        .replace(/^[-+]|[-+]$/g, "")
        .trim();
    at = end < 0 ? at + 1 : end + 2;
  }
}
