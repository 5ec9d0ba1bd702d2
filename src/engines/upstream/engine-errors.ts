import { isRecord, type JsonObject, parsedJson, record } from "../../core/text/json.js";

/** An error as an engine reports it: its message, its `code` and `type`, and the object that holds them. */
export interface EngineError {
  readonly message: string;
  readonly names: readonly unknown[];
  readonly fields: JsonObject;
}

const PREFIXES = [
  /^litellm\.(?<kind>\w+): (?:litellm\.\w+: )*(?:\w+: )*(?:\w+Exception - )?/,
  /^(?:\w+\.)*(?:TemplateError|BadRequestError|InvalidRequestException|jinja2\.exceptions\.TemplateError): /,
  /^(?:Error in applying chat template[^:]{0,60}|Failed to apply (?:chat )?template|Jinja Exception|Value is not callable): /i,
];

/** The errors in an answer's body, in all known forms; a gateway's may contain the engine's. None if the body is not JSON. */
export function errorsIn(text: string): Iterable<EngineError> {
  return nestedErrors(parsedJson(text), 0);
}

/** `kind` is the error's name in LiteLLM. */
function withoutPrefixes(message: string): { readonly text: string; readonly kind: string | null } {
  let text = message.trimStart();
  let kind: string | null = null;
  for (const prefix of PREFIXES) {
    const match = prefix.exec(text);
    if (match === null) continue;
    kind ??= match.groups?.["kind"] ?? null;
    text = text.slice(match[0].length);
  }
  return { text, kind };
}

function* nestedErrors(fields: unknown, depth: number): Generator<EngineError> {
  if (depth > 3 || !isRecord(fields)) return;
  if (Array.isArray(fields)) {
    yield* nestedErrors(fields[0], depth + 1);
    return;
  }
  const { error, message, detail } = fields;
  if (typeof message === "string") yield { message, names: [fields["code"], fields["type"]], fields };
  // Text Generation Inference: the message itself.
  if (typeof error === "string") yield { message: error, names: [fields["error_type"]], fields };
  else yield* nestedErrors(error, depth + 1);
  if (typeof detail === "string") {
    yield { message: detail, names: [], fields };
    yield* nestedErrors(parsedJson(detail), depth + 1);
  } else yield* nestedErrors(detail, depth + 1);
  yield* nestedErrors(fields["errors"], depth + 1);
  // Events of the Responses API.
  yield* nestedErrors(fields["response"], depth + 1);
  // OpenRouter; and Gemini, whose message is its own error as JSON.
  const { raw } = record(fields["metadata"]);
  if (typeof raw === "string") yield* nestedErrors(parsedJson(raw), depth + 1);
  if (typeof message === "string" && message.startsWith("{")) yield* nestedErrors(parsedJson(message), depth + 1);
}

/** Why an engine rejected a prompt, if a changed prompt may be accepted. Null: not reported. */
export type PromptRefusal =
  | {
      readonly kind: "context_length";
      /** Most tokens of a prompt, without those reserved for the answer. */
      readonly limitTokens: number | null;
      readonly promptTokens: number | null;
    }
  /** The engine, or the model's chat template, rejects the order of roles. */
  | { readonly kind: "role_order" };

const REFUSED = new Set([400, 413, 422]);
/** The status of llama.cpp and others if a chat template raises. */
const TEMPLATE_FAILED = 500;

/** Values of `code` and `type` that suffice without a known message. */
const CONTEXT_LENGTH_CODES = new Set([
  ...["context_length_exceeded", "context_window_exceeded", "exceed_context_size_error"],
  ...["model_max_prompt_tokens_exceeded", "tokens_limit_reached", "request_too_large"],
]);
const ROLE_ORDER_CODES = new Set(["invalid_request_message_order", "3230"]);

/**
 * Anchored at the beginning, so that client text quoted in an error does not match. Groups are tokens: `answer` is reserved for the answer,
 * `asked` is prompt and answer together.
 */
const CONTEXT_LENGTH_WORDINGS: readonly RegExp[] = [
  // OpenAI, Azure, vLLM, DeepSeek, OpenRouter ("endpoint's"): https://platform.openai.com/docs/guides/error-codes
  /^(?:This model's|This endpoint's|The model's) maximum context length is (?<limit>\d+) tokens?/i,
  // vLLM, where `max_tokens` does not fit after the prompt.
  /^'?max_tokens'?.{0,40} is too large: (?<answer>\d+)\. ?This model's maximum context length is (?<limit>\d+) tokens and your request has (?<prompt>\d+) input tokens/i,
  /^The (?:decoder )?prompt \((?:total )?length (?<prompt>\d+)\) is (?:longer than the maximum model length of|too long to fit into the model \(context length) (?<limit>\d+)/i,
  // OpenAI's newer models.
  /^Input tokens exceed the configured limit of (?<limit>\d+) tokens/i,
  /^Your input exceeds the context window of this model/i,
  // llama.cpp; older versions without numbers.
  /^(?:the )?request (?:\((?<prompt>\d+) tokens\) )?exceeds the available context size(?: \((?<limit>\d+) tokens\))?/i,
  // SGLang, Together.
  /^The input \((?<prompt>\d+) tokens\) is longer than the model's context length \((?<limit>\d+) tokens\)/i,
  /^Requested token count exceeds the model's maximum context length of (?<limit>\d+) tokens/i,
  // Text Generation Inference: https://huggingface.co/docs/text-generation-inference
  /^(?:Input validation error: )?`inputs` tokens \+ `max_new_tokens` must be <= (?<limit>\d+)\. Given: (?<prompt>\d+) `inputs` tokens and (?<answer>\d+) `max_new_tokens`/i,
  /^(?:Input validation error: )?`inputs` must have less than (?<limit>\d+) tokens\. Given: (?<prompt>\d+)/i,
  // Anthropic: https://platform.claude.com/docs/en/build-with-claude/context-windows
  /^prompt is too long: (?<prompt>\d+) tokens > (?<limit>\d+) maximum/i,
  /^input length and `max_tokens` exceed context limit: (?<prompt>\d+) \+ (?<answer>\d+) > (?<limit>\d+)/i,
  // Gemini: https://ai.google.dev/gemini-api/docs/troubleshooting
  /^The input token count (?:\((?<prompt>\d+)\) )?exceeds the maximum number of tokens allowed \((?<limit>\d+)\)/i,
  // Mistral's API.
  /^Prompt contains (?<prompt>\d+) tokens(?: and \d+ draft tokens)?, too large for model with (?<limit>\d+) maximum context length/i,
  // Bedrock: https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
  /^(?:The model returned the following errors: )?Input is too long for requested model/i,
  // xAI.
  /^This model's maximum prompt length is (?<limit>\d+) but the request contains (?<prompt>\d+) tokens/i,
  // GitHub's models, Groq, Ollama.
  /^Request body too large for .{1,80} model\. Max size: (?<limit>\d+) tokens/i,
  /^Please reduce the length of the messages or completion/i,
  /^(?:the )?input length exceeds (?:the )?(?:maximum )?context length/i,
];

/** Numbers later in the same message. */
const CONTEXT_LENGTH_NUMBERS: readonly RegExp[] = [
  /you requested (?:about )?(?<asked>\d+) tokens \((?<prompt>\d+) (?:in the messages|in your prompt|of text input).{0,80}?(?<answer>\d+) (?:in|for) the completion/i,
  /you requested (?:about )?(?<asked>\d+) tokens/i,
  /You requested a total of (?<asked>\d+) tokens: (?<prompt>\d+) tokens from the input messages and (?<answer>\d+) tokens for the completion/i,
  /your messages resulted in (?<prompt>\d+) tokens/i,
  /(?:your request has|the prompt contains|your prompt contains(?: at least)?) (?<prompt>\d+) input tokens/i,
];

/** Sources: mistral-common's `validator.py`; chat templates of Mistral, Devstral and Gemma on Hugging Face. */
const ROLE_ORDER_WORDINGS: readonly RegExp[] = [
  /^Unexpected role '?(?:RoleEnum\.|Roles\.)?user'? after role '?(?:RoleEnum\.|Roles\.)?tool'?/i,
  /^(?:After the optional system message, )?conversation roles must alternate /i,
  /^Expected last role (?:to be )?(?:one of: )?\[?User or Tool/i,
];

export function mayRefusePrompt(status: number): boolean {
  return REFUSED.has(status) || status === TEMPLATE_FAILED;
}

/** Why an engine rejected the prompt itself; null if it did not, or if neither message nor code is known. */
export function readPromptRefusal(status: number, text: string): PromptRefusal | null {
  if (!mayRefusePrompt(status)) return null;
  for (const error of errorsIn(text)) {
    const refusal = refusalIn(error);
    if (refusal !== null && (status !== TEMPLATE_FAILED || refusal.kind === "role_order")) return refusal;
  }
  return null;
}

function refusalIn({ message, names, fields }: EngineError): PromptRefusal | null {
  const { text, kind } = withoutPrefixes(message);
  const wording = CONTEXT_LENGTH_WORDINGS.map((says) => says.exec(text)).find((match) => match !== null);
  const isNamed = kind === "ContextWindowExceededError" || names.some((name) => CONTEXT_LENGTH_CODES.has(String(name)));
  if (wording !== undefined || isNamed) return contextLength(text, wording?.groups ?? {}, fields);
  const isOrder = names.some((name) => ROLE_ORDER_CODES.has(String(name)));
  return isOrder || ROLE_ORDER_WORDINGS.some((says) => says.test(text)) ? { kind: "role_order" } : null;
}

function contextLength(
  text: string,
  said: Readonly<Record<string, string | undefined>>,
  fields: JsonObject,
): PromptRefusal {
  const more = CONTEXT_LENGTH_NUMBERS.map((pattern) => pattern.exec(text)?.groups ?? {});
  const tokensOf = (name: string) =>
    count(said[name]) ?? more.map((groups) => count(groups[name])).find((n) => n !== null) ?? null;
  const limit = tokensOf("limit") ?? count(fields["n_ctx"]);
  const prompt = tokensOf("prompt") ?? count(fields["n_prompt_tokens"]) ?? tokensOf("asked");
  const left = limit === null ? null : limit - (tokensOf("answer") ?? 0);
  return { kind: "context_length", limitTokens: left !== null && left > 0 ? left : null, promptTokens: prompt };
}

function count(value: unknown): number | null {
  const number = typeof value === "string" ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number > 0 && number < 1e9 ? number : null;
}
