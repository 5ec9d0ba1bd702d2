import { parsedJson } from "./json-values.js";

/** An error as an engine reports it. */
export interface EngineError {
  readonly message: string;
  /** Its `code` and `type`. */
  readonly names: readonly unknown[];
  /** What the message stands among. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Prefixes that gateways and servers add to an engine's message. */
const PREFIXES = [
  /^litellm\.(?<kind>\w+): (?:litellm\.\w+: )*(?:\w+: )*(?:\w+Exception - )?/,
  /^(?:\w+\.)*(?:TemplateError|BadRequestError|InvalidRequestException|jinja2\.exceptions\.TemplateError): /,
  /^(?:Error in applying chat template[^:]{0,60}|Failed to apply (?:chat )?template|Jinja Exception|Value is not callable): /i,
];

/**
 * The errors in an answer's body, in all known forms; a gateway's may contain the engine's.
 *
 * @param text the body; none where it is no JSON
 */
export function errorsIn(text: string): Iterable<EngineError> {
  return nestedErrors(parsedJson(text), 0);
}

/** An engine's own message, without what stands in front of it; `kind`: the error's name in LiteLLM. */
export function withoutPrefixes(message: string): { readonly text: string; readonly kind: string | null } {
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

function* nestedErrors(body: unknown, depth: number): Generator<EngineError> {
  if (depth > 3 || typeof body !== "object" || body === null) return;
  if (Array.isArray(body)) {
    yield* nestedErrors(body[0], depth + 1);
    return;
  }
  const fields = body as Readonly<Record<string, unknown>>;
  const { error, message, detail } = fields;
  if (typeof message === "string") yield { message, names: [fields["code"], fields["type"]], fields };
  // Text Generation Inference: the message itself.
  if (typeof error === "string") yield { message: error, names: [fields["error_type"]], fields };
  else yield* nestedErrors(error, depth + 1);
  if (typeof detail === "string") {
    yield { message: detail, names: [], fields };
    yield* nestedErrors(parsedJson(detail), depth + 1);
  } else yield* nestedErrors(detail, depth + 1);
  // OpenRouter; and Gemini, whose message is its own error as JSON.
  const { metadata } = fields;
  if (typeof metadata === "object" && metadata !== null && "raw" in metadata && typeof metadata.raw === "string")
    yield* nestedErrors(parsedJson(metadata.raw), depth + 1);
  if (typeof message === "string" && message.startsWith("{")) yield* nestedErrors(parsedJson(message), depth + 1);
}
