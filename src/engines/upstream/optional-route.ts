import { LruMap } from "../../core/text/collections.js";
import { parsedJson, record, text } from "../../core/text/json.js";
import { isEventStream, oneChunk, rejoined, wholeOf } from "./answer-body.js";
import { type EngineError, errorsIn, withoutPrefixes } from "./engine-errors.js";
import { OWN_NAME, type Upstream, type UpstreamAnswer, type UpstreamCall } from "./upstream.js";

/** Codes and types that say it of a route. Sources: OpenAI, Groq, GitHub Copilot, vLLM. */
const ROUTE_CODES = new Set<unknown>([
  ...["unknown_url", "method_not_supported", "unsupported_endpoint", "unsupported_api_for_model", "route_not_found"],
  ...["NotImplementedError", "not_implemented"],
]);
/** Messages that say it of a route: OpenAI, LM Studio, Express, Spring, Fastify, Go, Cloudflare … */
const NO_ROUTE =
  /^(?:unknown request url|invalid url|unexpected endpoint|un(?:known|supported|recogni[sz]ed) (?:endpoint|route|path|url)|cannot (?:get|post)\b|no (?:static resource|route)\b|could not route to\b|route\b.*\bnot found|page not found|path not found)/i;
const NAMED_ROUTE = String.raw`(?:(?:responses|messages) (?:api|endpoint)|/?v\d+/(?:responses|messages))\b`;
const THERE = "(?:available|enabled|supported|implemented|compatible)";
/** … and those that name it: vLLM, OpenAI and Azure, where the model's kind, or this version of the API, has no such route. */
const NOT_THIS_ROUTE = new RegExp(
  [
    String.raw`\bdoes not support (?:the )?(?:${NAMED_ROUTE}|tokenization)`,
    String.raw`\b${NAMED_ROUTE} is (?:not (?:yet )?${THERE}|only ${THERE}|${THERE} only)`,
    String.raw`\bmodel\b.*(?:\b|can)not (?:(?:yet )?${THERE} |be used )?(?:in|with|by|for) (?:the )?${NAMED_ROUTE}`,
  ].join("|"),
  "i",
);

/** Codes and types that name what a route that is there was asked for. */
const THING_CODES =
  /model|deployment|response|conversation|provider|organi[sz]ation|project|account|item|prompt|container|api_key/i;
/** … and messages: of OpenAI, vLLM, Ollama, OpenRouter ("No endpoints found for …"), Moonshot and others. */
const THING_WORDINGS =
  /model|deployment|adapter|endpoints found|with id\b|\bproviders?\b|organi[sz]ation|\bproject\b|\baccount\b|\b(?:response|conversation|item|prompt|container|vector store|files|user|api key)\b.*\b(?:not found|not exist|expired|unknown)/i;
/** A path or an address in a message, of which `/v1/models` names no model. */
const PATH = /^\W*\/|^\W*v\d+\/|\/v\d+\/|:\/\//;
/** What LiteLLM appends to an engine's message. */
const LITELLM_SUFFIX = /\s*(?:Received Model Group|Available Model Group Fallbacks)=.*$/s;
/** Most characters of an error that is plain text; a longer one is a page. */
const MAX_TEXT_CHARACTERS = 500;

const METHOD_NOT_ALLOWED = 405;
/** Statuses with which servers say that they have no route. */
const ABSENT = new Set([404, METHOD_NOT_ALLOWED, 501]);
const OK = 200;
/** With it older versions of vLLM say so in words. */
const BAD_REQUEST = 400;

/** Whether an answer with this status may say that the engine has no such route. */
function mayBeAbsent(status: number): boolean {
  return ABSENT.has(status) || status === BAD_REQUEST;
}

/**
 * Whether an answer says that the engine has no such route. It is one of the route's own where its error is of something that the request
 * names: a model, an earlier response, a field. Pages, empty bodies and errors of nothing in particular are no API's.
 *
 * @param text the answer's body
 */
function saysAbsent(status: number, text: string): boolean {
  if (!mayBeAbsent(status)) return false;
  if (status === METHOD_NOT_ALLOWED) return true;
  const errors = [...errorsOf(text)];
  if (errors.some(isOfRoute)) return true;
  return ABSENT.has(status) && !errors.some(isOfThing);
}

/** Whether an answer with 200 begins as those of servers that have one for every path: a page, or an error of the route alone. */
function isOfAnyPath(text: string): boolean {
  if (/^\s*</.test(text)) return true;
  const isError = Object.keys(record(parsedJson(text))).join() === "error";
  return isError && [...errorsIn(text)].some(isOfRoute);
}

function* errorsOf(text: string): Generator<EngineError> {
  yield* errorsIn(text);
  const isPage = text.length > MAX_TEXT_CHARACTERS || /^\s*[<{[]/.test(text);
  if (!isPage) yield { message: text, names: [], fields: {} };
}

function isOfRoute(error: EngineError): boolean {
  if (error.names.some((name) => ROUTE_CODES.has(name))) return true;
  const { text } = withoutPrefixes(error.message);
  // What such a route does not support is a field of it.
  return NO_ROUTE.test(text) || (NOT_THIS_ROUTE.test(text) && [null, "model"].includes(fieldOf(error)));
}

/** The field of the request that an error is of; null for none. */
function fieldOf({ fields: { param } }: EngineError): string | null {
  return typeof param === "string" && !/^(?:none|null)?$/i.test(param) ? param : null;
}

function isOfThing(error: EngineError): boolean {
  const { message, names } = error;
  if (fieldOf(error) !== null || names.some((name) => THING_CODES.test(String(name)))) return true;
  const words = withoutPrefixes(message).text.replace(LITELLM_SUFFIX, "").split(/\s+/);
  return THING_WORDINGS.test(words.filter((word) => !PATH.test(word)).join(" "));
}

/** Milliseconds for which an engine counts as one with the route, or without: it may be replaced. */
const KNOWN_FOR_MS = 10 * 60 * 1_000;
/** Models of which it is known at a time. */
const MOST_MODELS = 1_000;
/** The field in an object at any depth: within a text its quotes are escaped. */
const MODEL = /"model"\s*:\s*"[^"\\]{0,256}"/g;

/** The model of a request; empty where it names none. */
function modelIn({ body }: UpstreamCall): string {
  if (typeof body !== "string") return "";
  const [field, other] = body.match(MODEL) ?? [];
  // A body may be long: it is parsed only where there are several.
  return field === undefined ? "" : text(record(parsedJson(other === undefined ? `{${field}}` : body))["model"]);
}

/** A route that an engine may have or not, which is found out by a request; for each model, as a gateway has an engine for each. */
export class OptionalRoute {
  readonly #known = new LruMap<string, { readonly isThere: boolean; readonly until: number }>(MOST_MODELS);

  /** @param now milliseconds since the epoch */
  constructor(
    private readonly upstream: Upstream,
    private readonly now: () => number,
  ) {}

  /**
   * The engine's answer; null where it has no such route. Then it is not asked again for ten minutes, unless it had answered in the last ten: one
   * error may be a gateway's, or a restart's. Rejects as {@link Upstream.send}.
   */
  async send(call: UpstreamCall, signal: AbortSignal): Promise<UpstreamAnswer | null> {
    const model = modelIn(call);
    if (this.#isThere(model) === false) return null;
    const answer = await this.upstream.send(call, signal);
    if (answer.status === OK && !isEventStream(answer)) return this.#unlessOfAnyPath(answer, model);
    if (answer.status === OK) this.#learn(model, true);
    if (!mayBeAbsent(answer.status)) return answer;
    const whole = await wholeOf(answer.body, this.upstream.name);
    return saysAbsent(answer.status, whole.toString("utf8"))
      ? this.#absent(model)
      : { ...answer, body: oneChunk(whole) };
  }

  /** Null where it is not known. */
  #isThere(model: string): boolean | null {
    const known = this.#known.get(model);
    return known !== undefined && this.now() < known.until ? known.isThere : null;
  }

  #learn(model: string, isThere: boolean): void {
    this.#known.set(model, { isThere, until: this.now() + KNOWN_FOR_MS });
  }

  /**
   * What a path beside the API says; null where the engine has no such route, or answers otherwise than with 200. In the background: whether
   * the engine can be reached, a chat shows. Rejects as {@link send}, and where there are more than `most` bytes.
   *
   * @param body posted; null: nothing is
   */
  async read(path: string, signal: AbortSignal, body: string | null = null, most?: number): Promise<string | null> {
    const method = body === null ? "GET" : "POST";
    const call = { method, path, query: "", headers: [OWN_NAME], body, isBackground: true } as const;
    const answer = await this.send(call, signal);
    return answer?.status === OK ? (await wholeOf(answer.body, this.upstream.name, most)).toString("utf8") : null;
  }

  #absent(model: string): null {
    if (this.#isThere(model) === null) this.#learn(model, false);
    return null;
  }

  /** Reads the answer's beginning, as far as it may be an error. */
  async #unlessOfAnyPath(answer: UpstreamAnswer, model: string): Promise<UpstreamAnswer | null> {
    const bytes = answer.body[Symbol.asyncIterator]();
    const first: Uint8Array[] = [];
    let text = "";
    while (text.length <= MAX_TEXT_CHARACTERS && parsedJson(text) === undefined) {
      const { value, done = false } = await bytes.next();
      if (done) break;
      first.push(value);
      text = Buffer.concat(first).toString("utf8");
      if (!isOfAnyPath(text)) continue;
      await bytes.return?.();
      return this.#absent(model);
    }
    this.#learn(model, true);
    return { ...answer, body: rejoined(first, bytes) };
  }
}
