/*
 * Chat templates of models that think. Some keep what an assistant thought only after the newest user's message: to them a user's message
 * after a tool's result is the next question, which takes the thoughts of the turn under way out of the prompt, and the cached prefix ends
 * at that turn's first step. Memories have to be in the result there.
 */

/** What stands after a version: no further digit, and no unit of billions. */
const NO_SIZE = "(?!\\d|[\\d.]*b\\b)";

/**
 * Models whose published templates do so, anywhere in a name: `Qwen/Qwen3-8B`, `qwen3.5:9b`, `zai-org/GLM-4.6-FP8`,
 * `accounts/x/models/glm-4p5`, `MiniMax-M2`. DeepSeek since V3.2, also by its API's names.
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

/** Whether a model's name is that of one whose template keeps thoughts only after the newest user's message. */
export function keepsThoughtsByName(model: unknown): boolean {
  return typeof model === "string" && MODEL.test(model.slice(0, 200));
}

/** A condition on a user's message, … */
const IS_OF_USER = /(?<!!=\s*)["']user["']/;
/** … a place in the list of messages, stored under a name, … */
const SETS_PLACE = /^set\s+([\w.]+)\s*=(?!=).*(?:loop\.|index|\bidx\b|\bi\b)/s;
/** … and thoughts. */
const THOUGHTS = /think|reasoning/i;

/**
 * Whether a Jinja chat template keeps thoughts only after the newest user's message: it stores the place of a user's message, and compares
 * others with it. False where it is not known. O(length).
 */
export function keepsThoughtsBehindUser(template: string): boolean {
  if (!THOUGHTS.test(template)) return false;
  const places = new Set<string>();
  /** The open loops and conditions, the innermost last. */
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

/** Most conditions around a place that are read. */
const MOST_CONDITIONS = 16;

/** What holds of a message where these are open: the innermost loop's condition, and those in it. */
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

/** What stands in a template's tags, statements and expressions, trimmed; without comments. */
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
