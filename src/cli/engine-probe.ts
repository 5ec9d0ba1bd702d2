import { v7 as uuidV7 } from "uuid";
import type { EngineUsage } from "../apis/api/usage.js";
import { priceOf } from "../core/cost/prices.js";
import type { ChatMessage, RequestId } from "../core/index.js";
import { type JsonObject, listIn, parsedJson, record, text } from "../core/text/json.js";
import type { EngineName } from "../engines/adapters/engine-adapter.js";
import { ENGINES } from "../engines/adapters/engines.js";
import { wholeOf } from "../engines/upstream/answer-body.js";
import { errorsIn } from "../engines/upstream/engine-errors.js";
import { RecognisedFamily } from "../engines/upstream/engine-family.js";
import { type ModelLimit, ModelLimits } from "../engines/upstream/model-limits.js";
import { OWN_NAME, type Upstream } from "../engines/upstream/upstream.js";
import { engineFamilyFor } from "../service/base/memprefix-parts.js";
import type { Settings } from "./setting-list.js";
import { engineOf, hasUnknownFamily } from "./settings.js";

/** The engine answered with an error. */
export class EngineRefusal extends Error {
  constructor(
    message: string,
    readonly advice: string,
    readonly status: number | null = null,
  ) {
    super(message);
  }
}

/** Tokens of a probe's prompt; providers cache nothing below 1,024. */
const PROBE_TOKENS = 1_500;
const MOST_BYTES = 8 * 1024 * 1024;
const LINE = "The museum opens at nine, and the garden behind it at ten.";
/** Approximate tokens of a line with its number. */
const LINE_TOKENS = 16;

export interface Probe {
  readonly usage: EngineUsage;
  /** To the end of an answer of a few tokens. */
  readonly ms: number;
}

/** A prompt whose beginning no earlier prompt had. */
export interface ProbePrompt {
  readonly messages: readonly ChatMessage[];
  /** Sends it as memprefix sends a tenant's. Rejects with {@link EngineRefusal}. @param more fields of the client's own */
  send(tenantKey: string, more?: JsonObject): Promise<Probe>;
}

/** An engine that can be sent probes. */
export interface ProbedEngine {
  readonly model: string;
  readonly family: EngineName;
  /** Prompts of some 1,500 tokens with the same beginning, each with another question. */
  newPrompts(): (question: string) => ProbePrompt;
}

/** An engine's family by model: the configured one, the host's provider, or what the engine says of itself. */
export async function familiesOf(settings: Settings, upstream: Upstream): Promise<(model: string) => EngineName> {
  const recognised = hasUnknownFamily(settings) ? new RecognisedFamily() : null;
  await recognised?.ask(upstream, () => {});
  recognised?.stop();
  return (model) => engineFamilyFor(engineOf(settings, recognised), model);
}

/**
 * Finds out which model to probe. Rejects with {@link EngineRefusal}.
 *
 * @param wanted the model; null: the only one listed
 */
export async function openProbes(
  upstream: Upstream,
  familyOf: (model: string) => EngineName,
  wanted: string | null,
): Promise<ProbedEngine> {
  const list = await received(upstream, { method: "GET", path: "models", query: "", headers: [OWN_NAME], body: null });
  if (list.status === 401 || list.status === 403) throw refusal(list);
  const json = parsedJson(list.text);
  const models = [...listIn(record(json)["data"] ?? json)].map(record);
  const names = models.map(({ id }) => text(id)).filter((id) => id !== "");
  const model = wanted ?? (names.length === 1 ? names[0] : undefined);
  if (model === undefined) {
    const listed = names.length === 0 ? "it lists no models" : `it lists ${names.length} models`;
    throw new EngineRefusal(`which model to try is not known: ${listed}`, "name one: --model NAME");
  }
  const family = familyOf(model);
  const { minimumTokens } = priceOf({ host: new URL(upstream.name).hostname, family }, model) ?? {};
  const lines = linesWithin(ModelLimits.read(json)?.of(model) ?? null, minimumTokens ?? 0);
  return {
    model,
    family,
    newPrompts() {
      const requestId = uuidV7() as RequestId;
      const known = [requestId, ...Array.from({ length: lines }, (_, at) => `${at}. ${LINE}`)].join("\n");
      return (question) => {
        const messages: ChatMessage[] = [
          { role: "system", content: known },
          { role: "user", content: question },
        ];
        const send: ProbePrompt["send"] = async (tenantKey, more = {}) => {
          const of = { requestId, tenantKey, scopeKey: tenantKey, messages, reusableMessages: [0, 1] };
          const { headers, fields, messages: marked } = ENGINES[family].emit(of);
          const body = { ...fields, model, messages: marked, ...more };
          const sent = await ask(upstream, { headers: Object.entries(headers), body });
          if (sent.status !== 200) throw refusal(sent);
          return { usage: ENGINES[family].readUsage(parsedJson(sent.text)), ms: sent.ms };
        };
        return { messages, send };
      };
    },
  };
}

function linesWithin(limit: ModelLimit | null, minimumTokens: number): number {
  const most = Math.floor((limit?.promptTokens ?? limit?.contextTokens ?? Number.POSITIVE_INFINITY) / 2);
  const least = Math.max(PROBE_TOKENS, 1.25 * minimumTokens);
  return Math.max(1, Math.floor(Math.min(most, least) / LINE_TOKENS));
}

function refusal({ status, text: body }: Received): EngineRefusal {
  const [error] = [...errorsIn(body)];
  const says = error === undefined ? "" : `: ${plain(error.message)}`;
  const advice =
    status === 401 || status === 403
      ? "give its key as MEMPREFIX_UPSTREAM_API_KEY"
      : status === 404
        ? "name a model that it serves (--model), or correct MEMPREFIX_UPSTREAM_URL, which most often ends with /v1"
        : "make it answer a chat completion of this model";
  return new EngineRefusal(`it answered with status ${status}${says}`, advice, status);
}

/** Untrusted text, as one line of a terminal. */
export function plain(line: string): string {
  return line.replace(/[\p{C}\s]+/gu, " ").slice(0, 200);
}

interface Received {
  readonly status: number;
  readonly text: string;
  readonly ms: number;
}

interface Sent {
  readonly headers: readonly (readonly [string, string])[];
  readonly body: JsonObject;
}

/** OpenAI's newer models have another name for the answer's length. */
async function ask(upstream: Upstream, { headers, body }: Sent): Promise<Received> {
  const to = { method: "POST", path: "chat/completions", query: "" } as const;
  const all = [["content-type", "application/json"] as const, ...headers];
  const first = await received(upstream, { ...to, headers: all, body: JSON.stringify({ ...body, max_tokens: 16 }) });
  if (first.status !== 400 || !first.text.includes("max_completion_tokens")) return first;
  const again = { ...to, headers: all, body: JSON.stringify({ ...body, max_completion_tokens: 16 }) };
  return await received(upstream, again);
}

export async function received(upstream: Upstream, call: Parameters<Upstream["send"]>[0]): Promise<Received> {
  const began = performance.now();
  const { status, body } = await upstream.send(call, new AbortController().signal);
  const text = await wholeOf(body, upstream.name, MOST_BYTES);
  return { status, text, ms: performance.now() - began };
}
