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
